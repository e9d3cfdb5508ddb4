// One step in which gradients are summed, as a plan.
#pragma once

#include "core/communication.h"
#include "core/job.h"

namespace syncline::plan {

// The cuts of a step with one micro-batch: the first operation of its backward pass, and the first
// one behind that pass and its exchanges.
struct StepCut {
  OpId backward = 0;
  OpId rest = 0;
};

// Puts in order: the forward pass (by layers where it may begin before all parameters are in, each
// layer's update ahead of it), the backward pass with its exchanges, the second halves of split
// exchanges, the update.
Plan step_plan(const Workload& workload, Communication communication, StepCut* cut = nullptr);

}  // namespace syncline::plan
