#include "core/plan/step_plan.h"

#include <algorithm>
#include <utility>

#include "core/base/index.h"
#include "core/plan/backward_pass.h"
#include "core/plan/builder.h"
#include "core/plan/forward_pass.h"
#include "core/plan/step_buckets.h"

namespace syncline::plan {
namespace {

// Owns the end of a step after its exchanges: the operation after which each bucket has arrived or
// is updated.
class StepEnd {
 public:
  StepEnd(Builder& build, const Workload& workload, const Communication& communication,
          const StepBuckets& buckets, const std::vector<OpId>& sent)
      : build_(build),
        workload_(workload),
        communication_(communication),
        buckets_(buckets),
        last_(static_cast<int>(workload.tensors.size()) - 1),
        arrived_(buckets.count(), -1) {
    std::copy(sent.begin(), sent.end(), arrived_.begin());
  }

 protected:
  // Adds the second halves, in the order of their need in the next forward pass or as they are
  // listed, each after its gradients' exchange or update.
  void gather() {
    const std::size_t gradients = buckets_.gradients();
    std::vector<std::size_t> order;
    for (std::size_t b = 0; b < buckets_.count(); ++b) {
      if (!buckets_.exchange(b).gather.empty()) order.push_back(b);
    }
    // A module's parameters precede those of modules inside it that the same layer awaits. If the
    // forward pass waits for all parameters at once, buckets are gathered in order of their index.
    const auto urgency = [&](std::size_t b) {
      const Bucket& bucket = buckets_.bucket(b);
      return std::pair(-bucket.ready, b >= gradients ? std::ranges::max(bucket.tensors) : 0);
    };
    if (communication_.cross_step) std::ranges::stable_sort(order, {}, urgency);
    std::size_t place = 0;
    for (const auto b : order) {
      const std::size_t number = buckets_.in_plan(b);
      const BucketExchange& exchange = buckets_.exchange(b);
      const OpId sent =
          build_.gather(number, exchange.gather, build_.stream_of(place++), updates_of(b));
      arrived_[b] = build_.receive(number, exchange, sent);
    }
  }

  // Updates each bucket's parameters after its gradients.
  void update_buckets() {
    for (std::size_t b = 0; b < buckets_.gradients(); ++b) {
      const auto& tensors = buckets_.bucket(b).tensors;
      arrived_[b] = build_.compute(Phase::kUpdate, workload_.update * buckets_.share_of_update(b),
                                   tensors.front(), tensors.back(), {arrived_[b]});
    }
  }

  Builder& build_;
  const Workload& workload_;
  const Communication& communication_;
  const StepBuckets& buckets_;
  int last_;                   // index of the last tensor
  std::vector<OpId> arrived_;  // operations, by bucket

 private:
  // Returns the operations after which bucket b's parameters may be gathered.
  std::vector<OpId> updates_of(std::size_t b) const {
    std::vector<OpId> list;
    for (const auto g : buckets_.updating(b)) list.push_back(arrived_[g]);
    keep_each_once(list);
    return list;
  }
};

// Owns the end of a step with an update of all parameters on each rank: once they have arrived, or
// in the next step's forward pass.
class WholeUpdate : public StepEnd {
 public:
  using StepEnd::StepEnd;

  // Adds the end. Returns the operation that completes each bucket.
  std::vector<OpId> put() {
    gather();
    const bool now = !communication_.cross_step;
    for (std::size_t b = 0; now && b < buckets_.gradients(); ++b) {
      arrived_[b] = build_.copy_out(buckets_.in_plan(b), buckets_.exchange(b), arrived_[b]);
    }
    build_.host_gap(arrived_);
    if (now) update();
    return std::move(arrived_);
  }

 private:
  void update() {
    if (communication_.updates_by_bucket) return update_buckets();
    build_.compute(Phase::kUpdate, workload_.update, 0, last_, arrived_);
  }
};

// Owns the end of a step with a sharded update; shards are gathered afterwards, or in the next
// step's forward pass.
class ShardedUpdate : public StepEnd {
 public:
  using StepEnd::StepEnd;

  // Adds the end. Returns the operation that completes each bucket; `sent` end its exchange.
  std::vector<OpId> put(const std::vector<OpId>& sent) {
    build_.host_gap(sent);
    if (communication_.updates_by_bucket) {
      update_buckets();
    } else {
      update_together(sent);
    }
    gather();
    return std::move(arrived_);
  }

 private:
  void update_together(const std::vector<OpId>& sent) {
    double share = 0;
    for (std::size_t b = 0; b < buckets_.gradients(); ++b) share += buckets_.share_of_update(b);
    const OpId all = build_.compute(Phase::kUpdate, workload_.update * share, 0, last_, sent);
    std::fill_n(arrived_.begin(), buckets_.gradients(), all);
  }
};

// Owns the parts of a step and adds them in order. Example: layers a and b with a bucket each; b's
// gradient is ready first. Operations have numbers; brackets name those that they await from the
// other stream:
//
//   compute        0 forward  1 backward b  3 backward a  5 update (2, 4)
//   communication  2 all-reduce b (1)  4 all-reduce a (3)
//
// With split exchanges across steps (`last 8` is operation 8 of the previous step):
//
//   compute        0 update a (last 8)  1 forward a  2 update b (last 9)  3 forward b
//                  4 backward b  6 backward a
//   communication  5 reduce-scatter b (4)  7 reduce-scatter a (6)  8 all-gather a  9 all-gather b
class StepPlan {
 public:
  StepPlan(const Workload& workload, Communication&& communication)
      : workload_(workload),
        communication_(std::move(communication)),
        build_(workload, communication_),
        buckets_(workload, communication_, build_.plan),
        forward_(build_, workload, communication_, buckets_) {}

  // Plans the step. Sets `cut`, if given, to the begin of the backward pass and of the rest.
  Plan make(StepCut* cut) {
    build_.plan.ops.reserve(3 * build_.plan.buckets.size() + 2);
    forward_.begin_step();
    earlier_micro_batches();
    if (cut != nullptr) cut->backward = next_op();
    BackwardPass backward(build_, workload_, communication_, buckets_.base(),
                          forward_.begun_gathers());
    const auto sent = backward.run();
    if (cut != nullptr) cut->rest = next_op();
    wait_for_step_before(update(sent));
    begin_ticks_with_the_step(backward.first_tick());
    return std::move(build_.plan);
  }

 private:
  OpId next_op() const { return static_cast<OpId>(build_.plan.ops.size()); }

  // Adds the micro-batches before the last one. If they exchange too, the next forward pass begins
  // once that is over.
  void earlier_micro_batches() {
    if (buckets_.base() == 0) {
      const bool gathers = communication_.gathers_each_pass && !communication_.fetching;
      return gathers ? gathering_micro_batches() : build_.earlier_micro_batches();
    }
    build_.last_micro_batch = false;
    const std::size_t gradients = buckets_.gradients();
    for (std::size_t begin = 0; begin < buckets_.base(); begin += gradients) {
      auto done =
          BackwardPass(build_, workload_, communication_, begin, forward_.begun_gathers()).run();
      for (std::size_t b = 0; b < gradients; ++b) {
        const BucketExchange& exchange = buckets_.exchange(b);
        if (!exchange.scattered) done[b] = build_.copy_out(begin + b, exchange, done[b]);
      }
      forward_.again(done);
    }
    build_.last_micro_batch = true;
  }

  // Adds micro-batches that gather parameters and exchange no gradients.
  void gathering_micro_batches() {
    for (std::int64_t m = 1; m < workload_.micro_batches; ++m) {
      forward_.again({BackwardPass(build_, workload_, communication_, 0).accumulate()});
    }
  }

  // Returns the operation that completes each bucket.
  std::vector<OpId> update(const std::vector<OpId>& sent) {
    if (communication_.shards > 1) {
      return ShardedUpdate(build_, workload_, communication_, buckets_, sent).put(sent);
    }
    return WholeUpdate(build_, workload_, communication_, buckets_, sent).put();
  }

  // Makes the forward pass wait for each bucket of the previous step; its operations are known once
  // the plan is complete.
  void wait_for_step_before(const std::vector<OpId>& arrived) {
    for (const auto& [op, buckets] : forward_.waits()) {
      auto& after = build_.plan.ops[index(op)].after_previous;
      for (const auto b : buckets) after.push_back(arrived[b]);
      keep_each_once(after);
    }
  }

  // Counts ticks from the step's begin, which is the end of the last one's computation.
  void begin_ticks_with_the_step(OpId first_tick) {
    if (first_tick < 0) return;
    build_.plan.ops[index(first_tick)].after_previous = {build_.last_computed()};
  }

  const Workload& workload_;
  Communication communication_;  // its buckets moved into the plan
  Builder build_;
  StepBuckets buckets_;
  ForwardPass forward_;
};

}  // namespace

Plan step_plan(const Workload& workload, Communication communication, StepCut* cut) {
  return StepPlan(workload, std::move(communication)).make(cut);
}

}  // namespace syncline::plan
