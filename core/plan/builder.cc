#include "core/plan/builder.h"

#include <algorithm>

#include "core/collective/nccl.h"

#include "core/plan/hierarchy.h"
#include "core/plan/sums.h"

namespace syncline::plan {
namespace {

// Rows of a sparse gradient travel with an int64 row index each.
constexpr Bytes kRowIndexBytes = 8;

}  // namespace

void Builder::earlier_micro_batches() {
  for (std::int64_t m = 1; m < workload_.micro_batches; ++m) {
    compute(Phase::kBackward, backward_time(workload_));
    compute(Phase::kForward, workload_.forward);
  }
}

OpId Builder::prepare(std::size_t index, OpId ready) {
  const Bucket& bucket = plan.buckets[index];
  if (plan.ranks == 1) return ready;
  if (const Seconds seconds = copy_time(bucket, true); seconds > 0) {
    ready = add(kComputeStream, Copy{static_cast<int>(index), seconds, true});
  }
  if (bucket.codec != nullptr) {
    ready = add(kComputeStream, Encode{static_cast<int>(index), encode_time(bucket)});
  }
  return ready;
}

Seconds Builder::prepare_time(std::size_t index) const {
  const Bucket& bucket = plan.buckets[index];
  if (plan.ranks == 1) return 0;
  return copy_time(bucket, true) + (bucket.codec != nullptr ? encode_time(bucket) : 0);
}

OpId Builder::send(const std::vector<collective::Collective>& collectives, StreamId stream,
                   std::vector<OpId> after) {
  OpId last = after.back();
  const Seconds host_sync = strategy_.host_sync ? cluster_.device.host_sync : 0;
  for (const auto& collective : collectives) {
    // Between the phases of a hierarchy the host waits as it does behind the last one.
    const bool follows = &collective != &collectives.front();
    if (follows && host_sync > 0) after = {add(stream, HostSync{host_sync})};
    // Stream order already holds an operation back until its predecessor there is done.
    std::erase_if(after,
                  [&](OpId id) { return plan.ops[static_cast<std::size_t>(id)].stream == stream; });
    last = add(stream, collective, std::move(after));
    if (const Sums sums = sums_of(collective, cluster_.device); sums.work > 0) {
      last = add(stream, sums);
    }
    after = {last};
  }
  return last;
}

OpId Builder::receive(std::size_t index, OpId last) {
  const Bucket& bucket = plan.buckets[index];
  if (plan.ranks == 1) return last;
  const StreamId stream = plan.ops[static_cast<std::size_t>(last)].stream;
  if (bucket.codec != nullptr) {
    last = add(stream, Decode{static_cast<int>(index), decode_time(bucket)});
  }
  if (strategy_.host_sync && cluster_.device.host_sync > 0) {
    last = add(stream, HostSync{cluster_.device.host_sync});
  }
  return last;
}

bool Builder::slows(Seconds beside) const {
  return strategy_.overlap && plan.ranks > 1 && beside != 0 && cluster_.device.overlap.any();
}

std::vector<OpId> Builder::delayed(std::size_t bucket, StreamId stream, std::vector<OpId> after,
                                   std::optional<Seconds> rest) {
  const Seconds delay = cluster_.device.overlap.delay;
  if (delay <= 0 || !slows(rest.value_or(workload_.forward))) return after;
  std::erase_if(after,
                [&](OpId id) { return plan.ops[static_cast<std::size_t>(id)].stream == stream; });
  const Slowed waits{static_cast<int>(bucket), 0, delay, rest.value_or(0)};
  return {add(stream, waits, std::move(after))};
}

OpId Builder::slowed_exchange(std::size_t bucket, OpId sent, Seconds rest) {
  if (!slows(rest)) return sent;
  const Overlap& overlap = cluster_.device.overlap;
  const StreamId stream = plan.ops[static_cast<std::size_t>(sent)].stream;
  return add(stream,
             Slowed{static_cast<int>(bucket), overlap.collective_slowdown, 0, rest, lost_share()});
}

OpId Builder::slowed_by_next_step(std::size_t bucket, OpId sent) {
  if (!slows(workload_.forward)) return sent;
  const Overlap& overlap = cluster_.device.overlap;
  const StreamId stream = plan.ops[static_cast<std::size_t>(sent)].stream;
  return add(stream, Slowed{static_cast<int>(bucket), overlap.collective_slowdown, 0, 0});
}

// Beside a collective of T seconds, computation gets on as in T / (1 + slowdown).
double Builder::lost_share() const {
  const double slowdown = cluster_.device.overlap.slowdown;
  return slowdown / (1 + slowdown);
}

OpId Builder::slowed_pass(std::size_t bucket, OpId last, Seconds beside) {
  if (!slows(beside)) return last;
  return add(kComputeStream, Slowed{static_cast<int>(bucket), lost_share(), 0, beside});
}

OpId Builder::slowed_by_step_before(OpId last, Seconds computed) {
  if (!slows(computed)) return last;
  return add(kComputeStream, Slowed{std::nullopt, lost_share(), 0, -computed});
}

OpId Builder::copy_out(std::size_t index, OpId arrived) {
  const Seconds seconds = copy_time(plan.buckets[index], false);
  if (plan.ranks == 1 || seconds <= 0) return arrived;
  return add(kComputeStream, Copy{static_cast<int>(index), seconds, false}, {arrived});
}

void Builder::wait_for_host(std::vector<OpId> after) {
  if (workload_.host_gap > 0) {
    add(kComputeStream, HostSync{workload_.host_gap}, std::move(after));
  }
}

OpId Builder::exchange(std::size_t index, OpId ready) {
  if (plan.ranks == 1) return ready;
  const auto collectives = collectives_of(plan.buckets[index], static_cast<int>(index));
  const OpId prepared = prepare(index, ready);
  return receive(index, send(collectives, stream_of(index), {prepared}));
}

collective::Collective Builder::half_of(collective::CollectiveKind kind, std::size_t index) const {
  const Bucket& bucket = plan.buckets[index];
  const Bytes unit =
      bucket.codec == nullptr ? size_of(bucket.dtype) : bucket.codec->encoded_bytes(1, 1);
  const std::int64_t elements =
      bucket.codec == nullptr ? (bucket.padded_bytes + unit - 1) / unit : bucket.elements;
  collective::Collective half{kind,     nullptr, collective::world_group(plan.ranks),
                              elements, unit,    static_cast<int>(index),
                              {}};
  collective::choose_algorithm(half, strategy_.algorithm, cluster_);
  return half;
}

// How a bucket travels follows from what it is. Under post-local SGD gradients stay in their group.
// What ranks select for themselves (rows, pairs of index and value) has to be gathered: no sum can
// be taken on the way. Everything else is summed by the strategy's hierarchy.
std::vector<collective::Collective> Builder::collectives_of(const Bucket& bucket, int id) const {
  const int ranks = plan.ranks;
  if (subgroup > 1) {
    const Bytes unit = size_of(bucket.dtype);
    collective::Collective inside{collective::CollectiveKind::kAllReduce,
                                  nullptr,
                                  collective::block_groups(ranks, subgroup),
                                  (bucket.padded_bytes + unit - 1) / unit,
                                  unit,
                                  id,
                                  {}};
    collective::choose_algorithm(inside, strategy_.algorithm, cluster_);
    return {inside};
  }
  if (bucket.sparse) {
    const Tensor& tensor = workload_.tensors[static_cast<std::size_t>(bucket.tensors.front())];
    const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
    const Bytes row = tensor.bytes() / rows + kRowIndexBytes;
    return {all_gather_by(strategy_, cluster_, bucket.kept * ranks, row, id)};
  }
  if (bucket.codec != nullptr && bucket.codec->sparse) {
    const Bytes pair = bucket.codec->encoded_bytes(bucket.elements, bucket.kept) / bucket.kept;
    return {all_gather_by(strategy_, cluster_, bucket.kept * ranks, pair, id)};
  }
  if (bucket.codec != nullptr && bucket.codec->low_rank) return factors_of(bucket, id);
  if (bucket.codec != nullptr) {
    const Bytes bytes = bucket.codec->encoded_bytes(bucket.elements, bucket.kept);
    return all_reduce_by(strategy_, cluster_, bucket.elements, bytes / bucket.elements, id);
  }
  const Bytes unit = size_of(bucket.dtype);
  return all_reduce_by(strategy_, cluster_, (bucket.padded_bytes + unit - 1) / unit, unit, id);
}

// What is not compressed, then the first factors, then the second ones, as torch's hook sends them.
std::vector<collective::Collective> Builder::factors_of(const Bucket& bucket, int id) const {
  const auto sizes = compress::low_rank_sizes(bucket.factors);
  std::vector<collective::Collective> collectives;
  for (const std::int64_t elements : {sizes.whole, sizes.p, sizes.q}) {
    if (elements == 0) continue;
    for (const auto& one :
         all_reduce_by(strategy_, cluster_, elements, size_of(bucket.dtype), id)) {
      collectives.push_back(one);
    }
  }
  return collectives;
}

Seconds Builder::copy_time(const Bucket& bucket, bool into) const {
  Bytes own = 0;
  Seconds measured = 0;
  for (const int index : bucket.tensors) {
    const auto t = static_cast<std::size_t>(index);
    if (t >= workload_.tensors.size()) continue;
    const Tensor& tensor = workload_.tensors[t];
    const bool part = bucket.tensors.size() == 1 && bucket.elements < tensor.elements;
    const std::int64_t elements = part ? bucket.elements : tensor.elements;
    const double share = static_cast<double>(elements) / static_cast<double>(tensor.elements);
    own += elements * size_of(tensor.dtype);
    measured += (into ? tensor.copy_in : tensor.copy_out) * share;
  }
  const bool cast = own != bucket.bytes && strategy_.fusion.to_fp32;
  if (bucket.sparse || (!strategy_.bucket_copies && !cast)) return 0;
  if (workload_.copies_measured && !cast) return measured;
  return memory_time(static_cast<double>(own + bucket.bytes));
}

Seconds Builder::work_time(const compress::LowRankWork& work) const {
  const double rate = cluster_.device.flops;
  return std::max(memory_time(work.bytes), rate > 0 ? work.flops / rate : 0);
}

Seconds Builder::encode_time(const Bucket& bucket) const {
  const auto launches = static_cast<double>(strategy_.compression.encode_launches);
  if (bucket.codec->low_rank) {
    const auto sizes = compress::low_rank_sizes(bucket.factors);
    return launches * static_cast<double>(sizes.matrices) * cluster_.device.launch +
           work_time(compress::encode_work(sizes, size_of(bucket.dtype)));
  }
  if (bucket.codec->sparse && cluster_.device.select > 0) {
    return launches * cluster_.device.launch + cluster_.device.selection +
           static_cast<double>(bucket.elements) / cluster_.device.select;
  }
  return launches * cluster_.device.launch +
         codec_time(bucket, bucket.codec->encode_traffic(bucket.elements, bucket.kept,
                                                         size_of(bucket.dtype)));
}

Seconds Builder::decode_time(const Bucket& bucket) const {
  const auto launches = static_cast<double>(strategy_.compression.decode_launches);
  if (bucket.codec->low_rank) {
    const auto sizes = compress::low_rank_sizes(bucket.factors);
    return launches * static_cast<double>(sizes.matrices) * cluster_.device.launch +
           work_time(compress::decode_work(sizes, size_of(bucket.dtype)));
  }
  return launches * cluster_.device.launch +
         codec_time(bucket, bucket.codec->decode_traffic(bucket.elements, bucket.kept, plan.ranks,
                                                         size_of(bucket.dtype)));
}

Seconds Builder::codec_time(const Bucket& bucket, double traffic) const {
  const bool rounded = !bucket.codec->sparse && cluster_.device.rounding > 0;
  return rounded ? traffic / cluster_.device.rounding : memory_time(traffic);
}

}  // namespace syncline::plan
