// One step in which gradients are summed, as a plan.
#pragma once

#include "core/plan/communication.h"

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

}  // namespace syncline::plan
