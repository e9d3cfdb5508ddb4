// The forward pass of a step, by layers where it may begin before all parameters are in.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/communication.h"
#include "core/plan/builder.h"
#include "core/plan/step_buckets.h"

namespace syncline::plan {

// One layer: tensors [first, last] of the workload are its parameters.
struct ForwardLayer {
  int first = 0;
  int last = 0;
  Seconds seconds = 0;
};

// First layer first. A layer is a run of gradients whose names agree up to the last dot, and takes
// its tensors' forward_times.
std::vector<ForwardLayer> forward_layers(const Workload& workload);

// An operation that waits for buckets of the step before.
struct NextStepWait {
  OpId op = 0;
  std::vector<std::size_t> buckets;
};

// Owns the forward passes of a step: their cuts into segments, the gathers among them, and their
// waits for the step before.
class ForwardPass {
 public:
  ForwardPass(Builder& build, const Workload& workload, const Communication& communication,
              const StepBuckets& buckets);

  // Puts the pass that begins a step. Within a step it is one piece. Across steps it is cut where a
  // layer needs buckets that no layer before it has waited for: layers between two cuts are one
  // segment, with the update of the buckets that the segment waited for ahead of it.
  void begin_step();

  // Puts the pass of a later micro-batch of one step, behind `done`. If parameters are given up
  // after each backward pass, they are gathered for it again.
  void again(const std::vector<OpId>& done);

  const std::vector<NextStepWait>& waits() const { return waits_; }

  // Returns the gathers that the micro-batch's forward pass asked for, by fetch; -1: it did not.
  const std::vector<OpId>& fetched() const { return fetched_; }

 private:
  // Layers that begin together, and the buckets that the first of them needs and none before it
  // did.
  struct Segment {
    ForwardLayer layers;
    std::vector<std::size_t> awaited;
  };
  std::vector<Segment> segments() const;
  bool is_gathered(std::size_t b) const { return !buckets_.exchange(b).gather.empty(); }

  void whole();
  void updated(const Segment& segment);
  void gathered(const std::vector<OpId>& begun);
  void fetching(const std::vector<OpId>& begun);
  std::vector<std::size_t> awaited_in_place() const;
  void copy_out_of_last_step(const std::vector<std::size_t>& awaited);
  OpId gather(std::size_t b, std::size_t place, std::vector<OpId> ahead);
  OpId fetch(const Fetch& fetch, std::vector<OpId> ahead, bool updated_before);

  Builder& build_;
  const Workload& workload_;
  const Communication& communication_;
  const StepBuckets& buckets_;
  bool sharded_;
  std::vector<NextStepWait> waits_;
  std::vector<OpId> fetched_;
};

}  // namespace syncline::plan
