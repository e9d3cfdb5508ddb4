// One step in which gradients are summed, as a plan.
#pragma once

#include "core/plan/communication.h"

namespace syncline::plan {

// In order: the forward pass (by layers where it may begin before all parameters are in, each
// layer's update ahead of it), the backward pass with its exchanges, the second halves of split
// exchanges, the update.
Plan step_plan(const Workload& workload, Communication communication);

}  // namespace syncline::plan
