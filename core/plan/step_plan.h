// One step in which gradients are summed, as a plan.
#pragma once

#include <vector>

#include "core/communication.h"
#include "core/job.h"

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
