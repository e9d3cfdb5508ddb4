// A job that is cut beside data parallelism (core/scenario/parallel.h): who sums a gradient, and
// the step of a pipeline, each stage with operations of its own.
#pragma once

#include <vector>

#include "core/plan/communication.h"

namespace syncline::plan {

// A stage's work on one micro-batch and one of its model chunks. Zero bubble cuts the backward pass
// in two: what the stage before waits for, and the weights' gradients.
struct Pass {
  enum class Kind { kForward, kBackward, kWeights } kind = Kind::kForward;
  int chunk = 0;
  int micro_batch = 0;
  bool operator==(const Pass&) const = default;
};

// One step of one stage, in order.
std::vector<Pass> passes_of(const Parallel& parallel, int micro_batches, int stage);

// Of a whole job's step, like step_plan. Requires parallel.whole_job().
Plan whole_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                const TrainingPoint& point);

// What no step of the workload goes below, whatever it exchanges: the passes of each stage, those
// that its first one waits for and those that wait for its last one; or the stage's passes and its
// update.
Seconds least_step(const Workload& workload);

}  // namespace syncline::plan
