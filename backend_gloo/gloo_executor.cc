#include "backend_gloo/gloo_executor.h"

#include <time.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <utility>

#include "backend_gloo/gloo_mesh.h"
#include "core/base/index.h"
#include "core/run/bucket_use.h"
#include "core/run/outer_step.h"
#include "core/run/payload.h"
#include "live/live_executor.h"

namespace syncline::gloo_backend {
namespace {

void sleep_until(Seconds time) {
  timespec until{};
  until.tv_sec = static_cast<time_t>(time);
  constexpr double kNano = 1e9;
  until.tv_nsec = static_cast<long>((time - static_cast<double>(until.tv_sec)) * kNano);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

// One rank's memory for one plan, and each operation's work on it.
//
// A dense bucket is a view: the backward pass writes into the payload itself. If the plan has
// copies, a codec or an exchange in halves, the backward pass writes into `gradients_` and the
// payload is filled from there.
class Work {
 public:
  Work(const plan::Plan& plan, const Workload& workload, int rank, const run::RankGradients& input,
       GlooMesh& mesh)
      : plan_(plan),
        rank_(rank),
        input_(input),
        mesh_(mesh),
        gradients_(input),
        uses_(run::bucket_uses(plan)),
        averages_(std::ranges::any_of(plan.buckets, &plan::Bucket::averaged)),
        outer_(plan),
        under_way_(plan.buckets.size(), 0),
        tensors_(workload.tensors.size()) {
    if (averages_) sent_parameters_ = parameters_ = input;
    const std::size_t buckets = plan.buckets.size();
    // Without overlap collectives run on the compute stream itself.
    for (const plan::Op& op : plan.ops) {
      if (!std::holds_alternative<collective::Collective>(op.work)) continue;
      communicators_.try_emplace(op.stream, static_cast<int>(communicators_.size()));
    }
    buckets_of_.resize(workload.tensors.size() + workload.buffers.size());
    for (std::size_t b = 0; b < buckets && plan.ranks > 1; ++b) {
      layouts_.emplace_back(plan, static_cast<int>(b), rank, workload);
      payloads_.emplace_back(static_cast<std::size_t>(layouts_.back().bytes()));
      if (!layouts_.back().member() || plan.buckets[b].averaged) continue;
      for (const int tensor : plan.buckets[b].tensors) {
        buckets_of_[index(tensor)].push_back(static_cast<int>(b));
      }
      // Padding travels as zeros.
      if (view(b)) layouts_[b].fill(gradients_, payloads_[b].data());
    }
  }

  // Carries out an operation that could begin at `ready`. Returns its end.
  Seconds carry_out(plan::OpId id, Seconds ready) {
    const plan::Op& op = plan_.ops[index(id)];
    if (const auto* compute = std::get_if<plan::Compute>(&op.work)) {
      const Seconds end = ready + compute->seconds;
      if (compute->phase == plan::Phase::kBackward) produce(compute->first, compute->last);
      if (compute->phase == plan::Phase::kAverage) average(*compute);
      return rest(end);
    }
    if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
      exchange(id, *collective, op.stream);
      return live::ControlChannel::now();
    }
    return handle(std::get<plan::Busy>(op.work), ready);
  }

  // Does the host's work of an operation. Returns its end.
  Seconds handle(const plan::Busy& busy, Seconds ready) {
    using Reason = plan::Busy::Reason;
    switch (busy.reason) {
      case Reason::kEncode:
      case Reason::kCopyIn:
        fill(index(busy.bucket));
        break;
      case Reason::kDecode:
      case Reason::kCopyOut:
        read(index(busy.bucket));
        break;
      case Reason::kHost:
      case Reason::kTick:
        return rest(ready + busy.seconds);
      case Reason::kSums:
      case Reason::kInterference:
        return ready;  // the machine's own time
    }
    return live::ControlChannel::now();
  }

  // Returns this rank's gradients after the last period, or its parameters if they are averaged.
  run::RankGradients result() {
    if (averages_) return std::move(parameters_);
    for (std::size_t b = 0; b < layouts_.size(); ++b) {
      if (view(b)) layouts_[b].read(payloads_[b].data(), gradients_);
    }
    return std::move(gradients_);
  }

  Bytes bytes_sent() const { return sent_; }
  int communicators() const { return static_cast<int>(communicators_.size()); }

 private:
  bool view(std::size_t bucket) const {
    return layouts_[bucket].member() && !plan_.buckets[bucket].averaged &&
           run::is_view(uses_[bucket], layouts_[bucket]);
  }

  // Sleeps until `end` and returns `end` even if it is late. A timer wakes up late, and writing a
  // gradient here may take longer than its layer (a small one with many parameters). The emulated
  // machine has neither delay, so the next layer must not be delayed.
  static Seconds rest(Seconds end) {
    sleep_until(end);
    return end;
  }

  // Writes the gradients of these tensors, as the backward pass computes them.
  void produce(int first, int last) {
    for (int tensor = first; tensor <= last; ++tensor) {
      const auto& values = input_[index(tensor)];
      for (const int bucket : buckets_of_[index(tensor)]) {
        const auto b = index(bucket);
        if (view(b)) {
          layouts_[b].fill_tensor(tensor, values, payloads_[b].data());
        } else {
          gradients_[index(tensor)] = values;
        }
      }
    }
  }

  void fill(std::size_t bucket) {
    if (!plan_.buckets[bucket].averaged) {
      return layouts_[bucket].fill(gradients_, payloads_[bucket].data());
    }
    for (const int tensor : plan_.buckets[bucket].tensors) {
      auto& values = sent_parameters_[index(tensor)] = input_[index(tensor)];
      outer_.make(tensor, values);
    }
    layouts_[bucket].fill(sent_parameters_, payloads_[bucket].data());
  }

  // Reads the bucket into gradients. An averaged one stays in its payload until average().
  void read(std::size_t bucket) {
    if (plan_.buckets[bucket].averaged) return;
    layouts_[bucket].read(payloads_[bucket].data(), gradients_);
  }

  // Carries out one collective of a bucket: fills the payload before the first one, reads it after
  // the last. Or passes a message between stages.
  void exchange(plan::OpId id, const collective::Collective& collective, plan::StreamId stream) {
    if (collective.bucket < 0) {
      std::vector<std::byte> message(static_cast<std::size_t>(collective.bytes()));
      return move(collective, stream, run::Payload(collective), 0, message.data());
    }
    const auto b = index(collective.bucket);
    const bool prepared = view(b) || uses_[b].staged;
    if (!prepared && uses_[b].first == id) fill(b);
    under_way_[b] = 1;
    const std::size_t number = uses_[b].number(id);
    const std::int64_t begin = layouts_[b].place(number);
    move(collective, stream, layouts_[b], begin, payloads_[b].data());
    layouts_[b].between(number, gradients_, payloads_[b].data());
    if (!prepared && uses_[b].last == id) read(b);
  }

  void move(const collective::Collective& collective, plan::StreamId stream,
            const run::Payload& layout, std::int64_t begin, std::byte* payload) {
    const Bytes sent = mesh_.run(communicators_.at(stream), collective, layout, begin, payload);
    const std::lock_guard lock(mutex_);
    sent_ += sent;
  }

  // LocalSGD: sets the new parameters of tensors with summed buckets: their averages, or the outer
  // step from them.
  void average(const plan::Compute& compute) {
    for (std::size_t b = 0; b < layouts_.size(); ++b) {
      const plan::Bucket& bucket = plan_.buckets[b];
      if (!run::takes(compute, bucket, tensors_) || std::exchange(under_way_[b], 0) == 0) continue;
      layouts_[b].read(payloads_[b].data(), sent_parameters_);
      for (const int tensor : bucket.tensors) {
        const auto t = index(tensor);
        outer_.apply(tensor, input_[t], sent_parameters_[t]);
        parameters_[t] = sent_parameters_[t];
      }
    }
  }

  const plan::Plan& plan_;
  const int rank_;
  const run::RankGradients& input_;
  GlooMesh& mesh_;
  run::RankGradients gradients_;
  const std::vector<run::BucketUse> uses_;  // per bucket
  std::vector<run::Payload> layouts_;
  std::vector<std::vector<std::byte>> payloads_;
  std::vector<std::vector<int>> buckets_of_;     // per tensor
  std::map<plan::StreamId, int> communicators_;  // per stream with collectives
  const bool averages_;
  run::OuterStep outer_;
  run::RankGradients parameters_;       // if they are averaged
  run::RankGradients sent_parameters_;  // values under way for the average
  std::vector<char> under_way_;         // per bucket
  const std::size_t tensors_;
  std::mutex mutex_;
  Bytes sent_ = 0;
};

class GlooExecutor final : public live::LiveExecutor {
 public:
  GlooExecutor(const Workload& workload, live::ControlChannel& channel)
      : workload_(workload), channel_(channel), mesh_(channel) {}

  std::string_view name() const override { return "gloo"; }
  Seconds clock_error() const override { return clock_error_; }
  std::string hardware() const override { return "gloo " + gloo_version() + " over TCP"; }

  run::Outcome run(const plan::Plan& plan, const run::Gradients& input, int periods) override {
    assert(plan.ranks == channel_.ranks() && "a plan for as many ranks as have joined");
    const auto rank = static_cast<std::size_t>(channel_.rank());
    Work work(plan, workload_, channel_.rank(), input[rank], mesh_);
    mesh_.connect(work.communicators());
    channel_.barrier(live::ControlChannel::kPatient);
    const live::ClockOffset before = channel_.clock();
    channel_.barrier();

    run::Outcome outcome;
    auto spans = live::run_stream_threads(
        plan, periods, channel_.rank(),
        [&](plan::OpId op, int, Seconds ready) { return work.carry_out(op, ready); });
    const live::ClockOffset after = channel_.clock();
    outcome.timeline =
        live::exchange_timelines(channel_, std::move(spans), plan, periods, before, after);
    clock_error_ = live::worst_clock_error(channel_, before, after);
    outcome.gradients.resize(static_cast<std::size_t>(plan.ranks));
    outcome.gradients[rank] = work.result();
    outcome.bytes_sent.assign(static_cast<std::size_t>(plan.ranks), 0);
    outcome.bytes_sent[rank] = work.bytes_sent();
    return outcome;
  }

 private:
  const Workload& workload_;
  live::ControlChannel& channel_;
  GlooMesh mesh_;
  Seconds clock_error_ = 0;
};

}  // namespace

std::unique_ptr<live::LiveExecutor> make_gloo_executor(const Workload& workload,
                                                       live::ControlChannel& channel) {
  return std::make_unique<GlooExecutor>(workload, channel);
}

}  // namespace syncline::gloo_backend
