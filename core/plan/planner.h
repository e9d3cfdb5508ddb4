// From strategy to plan: fuse -> compress -> hierarchy -> streams. One call for one point of the
// training; `training_phases` says which points a run consists of.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace syncline::plan {

// The moment of the training that a plan is for.
struct TrainingPoint {
  // Long after every ramp unless said otherwise.
  std::int64_t step = std::numeric_limits<std::int64_t>::max() / 4;
  std::int64_t period = 0;  // LocalSGD steps to the next averaging; 0: the strategy's own
  // Where gradients are released at ticks (Fusion::cycle): which of kTickPhases moments of a cycle,
  // spread evenly over it, the step begins at. A step is not a multiple of a cycle, so all of
  // them are equally likely in a run.
  int tick_phase = 0;
  bool averaged = true;  // LocalSGD; false: a step behind the run's last averaging
};

inline constexpr int kTickPhases = 20;

struct TrainingPhase {
  TrainingPoint point;
  std::int64_t steps = 1;  // how many steps of the run are like this
};

// The plan of one period. Requires that strategy was read for this cluster.
Plan make_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
               const TrainingPoint& point = {});

// A run as its distinct plans with their weights: one phase where a single step is priced, several
// where a sparsity ramp or a LocalSGD period changes on the way.
std::vector<TrainingPhase> training_phases(const Strategy& strategy, const Training& training);

}  // namespace syncline::plan
