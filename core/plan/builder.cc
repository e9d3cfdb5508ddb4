#include "core/plan/builder.h"

#include "core/base/index.h"

namespace syncline::plan {

Builder::Builder(const Workload& workload, const Communication& communication)
    : workload_(workload), communication_(communication) {
  plan.ranks = communication.ranks;
  plan.streams = 1 + communication.streams;
  if (communication.across_stream) across_stream_ = plan.streams++;
  plan.updates_by_bucket = communication.updates_by_bucket;
}

void Builder::begin_step() {
  if (communication_.step_begin > 0) wait_for_host(communication_.step_begin);
  if (communication_.buffer_broadcast > 0) wait_for_host(communication_.buffer_broadcast);
}

void Builder::earlier_micro_batches() {
  for (std::int64_t m = 1; m < workload_.micro_batches; ++m) {
    compute(Phase::kBackward, backward_time(workload_));
    compute(Phase::kForward, workload_.forward);
  }
}

StreamId Builder::stream_of(std::size_t bucket) const {
  if (communication_.streams == 0) return kComputeStream;
  return 1 + static_cast<StreamId>(bucket % index(communication_.streams));
}

OpId Builder::prepare(std::size_t bucket, const BucketExchange& exchange, OpId ready) {
  const auto number = static_cast<int>(bucket);
  if (exchange.copy_in > 0) {
    ready = add(kComputeStream, Busy{Busy::Reason::kCopyIn, exchange.copy_in, number});
  }
  if (plan.ranks > 1 && plan.buckets[bucket].codec != nullptr) {
    ready = add(kComputeStream, Busy{Busy::Reason::kEncode, exchange.encode, number});
  }
  return ready;
}

OpId Builder::send(std::size_t bucket, const Route& route, StreamId stream,
                   std::vector<OpId> after) {
  OpId last = after.empty() ? OpId{-1} : after.back();
  bool first = true;
  for (const RouteStep& leg : route) {
    if (leg.last_micro_batch && !last_micro_batch) continue;
    const bool follows = !std::exchange(first, false);
    if (follows) after = {last};
    // Between the legs of a route the host waits as it does after the last one.
    if (follows && communication_.host_sync > 0) {
      after = {wait_for_host(communication_.host_sync, {}, stream)};
    }
    if (follows && leg.own_stream && across_stream_ != kComputeStream) stream = across_stream_;
    // Stream order already delays an operation until its predecessor there is done.
    std::erase_if(after, [&](OpId id) { return plan.ops[index(id)].stream == stream; });
    last = add(stream, leg.collective, std::move(after));
    std::get<collective::Collective>(plan.ops.back().work).bucket = static_cast<int>(bucket);
  }
  return last;
}

OpId Builder::gather(std::size_t bucket, const Route& route, StreamId stream,
                     std::vector<OpId> after) {
  const OpId sent = send(bucket, route, stream, std::move(after));
  plan.ops[index(sent)].gathers = true;
  return sent;
}

OpId Builder::receive(std::size_t bucket, const BucketExchange& exchange, OpId last) {
  if (plan.ranks == 1) return last;
  const StreamId stream = plan.ops[index(last)].stream;
  if (plan.buckets[bucket].codec != nullptr) {
    last = add(stream, Busy{Busy::Reason::kDecode, exchange.decode, static_cast<int>(bucket)});
  }
  if (communication_.host_sync > 0) last = wait_for_host(communication_.host_sync, {}, stream);
  return last;
}

OpId Builder::copy_out(std::size_t bucket, const BucketExchange& exchange, OpId arrived) {
  if (exchange.copy_out <= 0) return arrived;
  const Busy copy{Busy::Reason::kCopyOut, exchange.copy_out, static_cast<int>(bucket)};
  return add(kComputeStream, copy, {arrived});
}

OpId Builder::last_computed() const {
  auto id = static_cast<OpId>(plan.ops.size()) - 1;
  while (plan.ops[index(id)].stream != kComputeStream) --id;
  return id;
}

void shift_bucket(Work& work, int first) {
  if (auto* collective = std::get_if<collective::Collective>(&work)) collective->bucket += first;
  auto* busy = std::get_if<Busy>(&work);
  if (busy != nullptr && busy->bucket >= 0) busy->bucket += first;
}

void Builder::host_gap(std::vector<OpId> after) {
  if (workload_.host_gap > 0) wait_for_host(workload_.host_gap, std::move(after));
}

}  // namespace syncline::plan
