// A training step with one communication stream and affine costs, evaluated in a microsecond: what
// searches by the hundred thousand are made of, and the yardstick of fusion rules. The planner and
// the executors cost whole strategies; this costs how gradients are cut into buckets and nothing
// else.
#pragma once

#include <vector>

#include "core/base/units.h"
#include "core/job.h"
#include "studies/tune/configuration.h"

namespace syncline::test {

// Gradients in ready order. `ready` does not fall; both lists have the same length.
struct FusionProblem {
  std::vector<Seconds> ready;
  std::vector<double> bytes;
};

struct AffineCost {
  Seconds latency = 0;          // at least 0
  double seconds_per_byte = 0;  // at least 0
};

// The affine cost of runs of a problem's gradients.
tune::RunCost run_cost(const FusionProblem& problem, const AffineCost& cost);

using tune::best_fusion;
// The dynamic programme of studies/tune/configuration.h for an affine cost, in O(L). C does not
// fall, so the prefixes that are done by ready[i-1] (of which the longest is best) and those that
// are not (of which the smallest C[j] - rate * M[j] is best, M the prefix sums of bytes) part at an
// index that only moves right; the second minimum is that of a sliding window.
tune::FusionPlan best_fusion(const FusionProblem& problem, const AffineCost& cost);

// When the last of these buckets has been exchanged. `ends` rise and end with the last gradient.
Seconds finish_of(const std::vector<Seconds>& ready, const std::vector<std::size_t>& ends,
                  const tune::RunCost& cost);

// What no fusion goes below, on any number of streams that share the link and never leave it idle
// while a bucket waits: max over i of ready[i] + latency + rate * (bytes from i on). One stream
// often reaches it.
Seconds fusion_lower_bound(const FusionProblem& problem, const AffineCost& cost);

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

}  // namespace syncline::test
