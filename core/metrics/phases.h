// A training in stretches, each with a plan of its own: a sparsity ramp or growing periods make
// several, most have one.
#pragma once

#include <functional>

#include "core/executor.h"
#include "core/job.h"
#include "core/plan.h"

namespace syncline::measure {

// One stretch of a training with a plan of its own, and how it is run to be measured.
struct TrainingStretch {
  const Workload& workload;  // with its operators fused as the strategy says
  plan::Plan plan;
  int periods = 3;   // to run
  int warmup = 1;    // of these, dropped
  double steps = 1;  // that it stands for
};

// Calls `use` for each stretch of the training.
void for_each_phase(const Job& job, const Strategy& strategy, run::ExecutorTraits executor,
                    const std::function<void(TrainingStretch&)>& use);

// The mean of a step time over the phases, by their steps.
Seconds mean_over_phases(const Job& job, const Strategy& strategy, run::ExecutorTraits executor,
                         const std::function<Seconds(TrainingStretch&)>& step);

}  // namespace syncline::measure
