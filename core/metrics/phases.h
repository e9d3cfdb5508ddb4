// A training in phases, each with its own plan: a sparsity ramp or growing periods make several,
// most have one.
#pragma once

#include <functional>
#include <vector>

#include "core/executor.h"
#include "core/job.h"
#include "core/plan.h"

namespace syncline::measure {

// Returns the phases of a training (plan::training_phases) as they are planned: of a long LocalSGD
// period equal steps make a phase of their own, and some of them are planned.
std::vector<plan::TrainingPhase> planned_phases(const Strategy& strategy, const Training& training);

// One phase of a training, and how it is run to be measured.
struct TrainingStretch {
  const Workload& workload;  // with its operators fused by the strategy
  plan::Plan plan;
  int periods = 3;   // to run
  int warmup = 1;    // of these, dropped
  double steps = 1;  // of the training in this phase
};

// Calls `use` for each phase of the training.
void for_each_phase(const Job& job, const Strategy& strategy, run::ExecutorTraits executor,
                    const std::function<void(TrainingStretch&)>& use);

// Returns the mean of a step time over the phases, by their steps.
Seconds mean_over_phases(const Job& job, const Strategy& strategy, run::ExecutorTraits executor,
                         const std::function<Seconds(TrainingStretch&)>& step);

}  // namespace syncline::measure
