// A training step with one communication stream and affine costs, priced in a microsecond: what
// searches by the hundred thousand are made of. The planner and the executors price whole
// strategies; this prices how gradients are cut into buckets and nothing else.
#pragma once

#include <vector>

#include "core/scenario/workload.h"
#include "core/tune/optimum.h"
#include "core/units.h"

namespace syncline {

struct StepTrace {
  Seconds forward = 0;
  Seconds update = 0;
  FusionProblem gradients;  // ready since the backward pass began
};
StepTrace step_trace(const Workload& workload);

// forward + max(last gradient ready, last bucket done) + update. `ends` as in FusionPlan.
Seconds step_time(const StepTrace& trace, const std::vector<std::size_t>& ends,
                  const AffineCost& cost);
// The least of it.
Seconds optimal_step_time(const StepTrace& trace, const AffineCost& cost);

// Partitions that size limits make, a bucket closing before its limit would be exceeded: `count`
// limits from the smallest gradient to all of them, evenly by logarithm. From many buckets to one,
// without repeats. A sample of thresholds.h's, for searches that need a few of every size.
std::vector<std::vector<std::size_t>> sampled_thresholds(const FusionProblem& gradients, int count);

}  // namespace syncline
