// The forward pass by layers, where the next step may begin before all parameters are in.
#pragma once

#include <vector>

#include "core/scenario/workload.h"

namespace syncline::plan {

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
