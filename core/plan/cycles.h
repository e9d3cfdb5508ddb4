// Release at ticks, as Horovod does it: a background thread wakes once a cycle, also while the
// network is busy, and packs what has become ready since its last tick.
#pragma once

#include <vector>

#include "core/scenario/workload.h"

namespace syncline::plan {

// What is ready at one tick, packed.
struct Release {
  Seconds time = 0;  // of the tick, from the step's begin
  std::vector<std::vector<int>> groups;
};

// What one gradient is on the wire.
struct OnWire {
  DType dtype = DType::kFp32;
  Bytes bytes = 0;
};

// `ready` rises; ticks come at phase + k * cycle. A gradient that is ready at a tick goes with it.
// At each, the first gradient opens a bucket, and those behind it are added as long as the sum
// stays within `threshold`; a larger one goes alone. A gradient of another dtype is looked past
// while the bucket and all that was looked past would stay within it; what was looked past comes
// first for the next bucket (Controller::FuseResponses).
std::vector<Release> tick_releases(const std::vector<Seconds>& ready,
                                   const std::vector<OnWire>& wire, Bytes threshold, Seconds cycle,
                                   Seconds phase);

}  // namespace syncline::plan
