// The time of an operator list on a device, by two clocks: the host launches kernels one after the
// other and runs ahead of the device; a kernel begins once launched, and kernel_gap after the one
// before it. Both clocks start with the step. A product takes matrix FLOPs / matrix rate + other
// FLOPs / rate + bytes / memory bandwidth (tests/hardware/reached_test.cc), any other kernel
// max(FLOPs / rate, bytes / memory bandwidth).
#pragma once

#include <numeric>
#include <vector>

#include "core/cluster.h"
#include "core/job.h"

namespace syncline::operators {

// Time of one step's parts on the compute stream, with nothing to wait for.
struct StepTimes {
  Seconds forward = 0;
  // For each gradient of the list, the time from the readiness of the one before it (or the end of
  // the forward pass) to its own. What follows the last gradient is part of it.
  std::vector<Seconds> backward;
  Seconds update = 0;

  Seconds all() const {
    return std::accumulate(backward.begin(), backward.end(), forward + update);
  }
};

// Returns whether products are in TF32 or FP8: `rounded` ones, and convolutions of fp32, for which
// cuDNN needs no telling, on devices that can. Data sheets give TF32 half the rate of half
// precision and FP8 twice that.
bool rounds(const Operator& op, int compute_capability);

// What a product gets of its format's rate where rows do not begin at multiples of 16 bytes; 1.
double aligned_share(const Operator& op, const Device& device);

// Returns the operator's kernels without launch and gap.
Seconds kernel_time(const OperatorList& list, const Operator& op, const Device& device);

// Requires device.flops and device.memory above 0.
StepTimes evaluate_operators(const OperatorList& list, const Device& device);

}  // namespace syncline::operators
