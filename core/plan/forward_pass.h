// The forward pass of a step, by layers if it may begin before all parameters are in place.
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

// Returns layers, the first one first. A layer is a run of gradients with the same name up to the
// last dot, and takes its tensors' forward_times.
std::vector<ForwardLayer> forward_layers(const Workload& workload);

// An operation that waits for buckets of the previous step.
struct NextStepWait {
  OpId op = 0;
  std::vector<std::size_t> buckets;
};

// Owns the forward passes of a step: their cuts into segments, the gathers among them, and their
// waits for the previous step.
class ForwardPass {
 public:
  ForwardPass(Builder& build, const Workload& workload, const Communication& communication,
              const StepBuckets& buckets);

  // Adds the pass that begins a step. Within a step it is one piece. Across steps it is cut before
  // each layer that needs buckets not awaited so far. The layers between two cuts are one segment;
  // the update of the buckets that it awaits precedes it.
  void begin_step();

  // Adds the pass of a later micro-batch of one step, after `done`. Parameters that are resharded
  // after each backward pass are gathered for it again.
  void again(const std::vector<OpId>& done);

  const std::vector<NextStepWait>& waits() const { return waits_; }

  // Returns the gathers that the micro-batch's forward pass began, by fetch; -1: none.
  const std::vector<OpId>& begun_gathers() const { return fetched_; }

 private:
  // Layers that begin together, and the buckets that are first needed by the first of them.
  struct Segment {
    ForwardLayer layers;
    std::vector<std::size_t> awaited;
  };
  std::vector<Segment> segments() const;
  bool is_gathered(std::size_t b) const { return !buckets_.exchange(b).gather.empty(); }

  void whole();
  void add_updated_segment(const Segment& segment);
  void add_gathering_pass(const std::vector<OpId>& begun);
  void fetching(const std::vector<OpId>& begun);
  std::vector<std::size_t> first_pass_buckets() const;
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
