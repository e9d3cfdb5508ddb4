// One step that sums gradients, as a plan.
#pragma once

#include "core/communication.h"
#include "core/job.h"

namespace syncline::plan {

// The cuts of a step with one micro-batch: the first operation of its backward pass, and the first
// one after that pass and its exchanges.
struct StepCut {
  OpId backward = 0;
  OpId rest = 0;
};

// Puts together in order: the forward pass, the backward pass with its exchanges, the second halves
// of split exchanges, the update. The forward pass is by layers, each after its update, if it may
// begin before all parameters are in place.
Plan step_plan(const Workload& workload, Communication communication, StepCut* cut = nullptr);

}  // namespace syncline::plan
