// The forward pass of a step, by layers where it may begin before all parameters are in.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Says if a step gathers its parameters itself, as there is room for them, instead of the step
// before it once they are updated.
bool gathers_in_forward(const Communication& communication);

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

  // Puts the pass of a later micro-batch of one step, behind `done`. Where parameters are given up
  // after each backward pass they are gathered for it again, one segment's after the other's.
  void again(const std::vector<OpId>& done);

  const std::vector<NextStepWait>& waits() const { return waits_; }

 private:
  // Layers that begin together, and the buckets that the first of them needs and none before it
  // did.
  struct Segment {
    ForwardLayer layers;
    std::vector<std::size_t> awaited;
  };
  // A bucket that a segment needs.
  struct Needed {
    std::size_t segment = 0;
    std::size_t bucket = 0;
  };

  std::vector<Segment> segments() const;
  std::vector<std::int64_t> given_up_behind(const std::vector<Segment>& list) const;
  std::vector<Needed> gathered_for(const std::vector<Segment>& list) const;
  bool is_gathered(std::size_t b) const { return !buckets_.exchange(b).gather.empty(); }

  void whole();
  void updated(const Segment& segment);
  void gathered(const std::vector<OpId>& begun);
  void copy_out_of_last_step(const std::vector<std::size_t>& awaited);
  OpId gather(std::size_t b, std::size_t place, const std::vector<OpId>& ahead,
              bool updated_before);

  Builder& build_;
  const Workload& workload_;
  const Communication& communication_;
  const StepBuckets& buckets_;
  bool sharded_;
  std::vector<NextStepWait> waits_;
};

}  // namespace syncline::plan
