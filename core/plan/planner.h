// From strategy to plan, by way of what it communicates (communication.h). One call for one point
// of the training; `training_phases` says which points a run consists of.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/communication.h"
#include "core/scenario/scenario.h"

namespace syncline::plan {

struct TrainingPhase {
  TrainingPoint point;
  std::int64_t steps = 1;  // how many steps of the run are like this
};

// How long each of so many equal blocks of ranks computes in a step, over what the workload says:
// by its speed, and by its own steps of a period of LocalSGD over their mean.
std::vector<double> block_times(const Cluster& cluster, const LocalSgd& local);

// The plan of one period. Requires that strategy was read for this cluster.
Plan make_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
               const TrainingPoint& point = {});

// The same among those who sum one gradient of a job that is cut (scenario.h's exchanging), as if
// they were all that trains.
Plan exchange_plan(Workload workload, const Cluster& exchanging, const Strategy& strategy);

// A run as its distinct plans with their weights: one phase where a single step is evaluated,
// several where a sparsity ramp or a LocalSGD period changes on the way.
std::vector<TrainingPhase> training_phases(const Strategy& strategy, const Training& training);

}  // namespace syncline::plan
