// One step in which gradients are summed, as a plan.
#pragma once

#include <vector>

#include "core/plan/communication.h"
#include "core/scenario/workload.h"

namespace syncline::plan {

// Where a step with one micro-batch can be cut: its backward pass begins, and what follows it.
struct StepCut {
  OpId backward = 0;
  OpId rest = 0;
};

// In order: the forward pass (by layers where it may begin before all parameters are in, each
// layer's update ahead of it), the backward pass with its exchanges, the second halves of split
// exchanges, the update.
Plan step_plan(const Workload& workload, Communication communication, StepCut* cut = nullptr);

// A period of LocalSGD: local steps, and the averaging of their parameters, fragment by fragment.
// Fragment f of P is applied behind step (f + 1) * period / P, and sent `delay` steps before, both
// counted from the period's begin, as torchft's DiLoCo does (local_sgd.py).

// `averaged` false: a run ends before the averaging.
Plan local_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                const TrainingPoint& point, std::int64_t period, bool averaged);

// The same where each step takes `step` as a whole, whatever a group exchanges in it.
Plan local_plan_of_steps(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                         Seconds step);

// The forward pass by layers, where the next step may begin before all parameters are in.

// One layer: tensors [first, last] of the workload are its parameters.
struct ForwardLayer {
  int first = 0;
  int last = 0;
  Seconds seconds = 0;
};

// First layer first. A layer is a run of gradients whose names agree up to the last dot, and takes
// its tensors' forward_times.
std::vector<ForwardLayer> forward_layers(const Workload& workload);

}  // namespace syncline::plan
