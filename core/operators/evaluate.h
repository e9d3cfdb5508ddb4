// The time of an operator list on a device, by two clocks from the step's begin. The host launches
// kernels one after the other and runs ahead of the device; a kernel begins once launched, and
// kernel_gap after the previous one. A product takes matrix FLOPs / matrix rate + other FLOPs /
// rate + bytes / memory bandwidth (tests/hardware/reached_test.cc), any other kernel max(FLOPs /
// rate, bytes / memory bandwidth).
#pragma once

#include <numeric>
#include <vector>

#include "core/cluster.h"
#include "core/job.h"

namespace syncline::operators {

// Times of one step's parts on the compute stream, without waits.
struct StepTimes {
  Seconds forward = 0;
  // For each gradient of the list, the time from the previous one's readiness (or the end of the
  // forward pass) to its own. Operators after the last gradient count for it.
  std::vector<Seconds> backward;
  Seconds update = 0;

  Seconds all() const {
    return std::accumulate(backward.begin(), backward.end(), forward + update);
  }
};

// True if products run in TF32 or FP8: `rounded` ones, and convolutions of fp32, which cuDNN rounds
// by default, on devices that can. Data sheets give TF32 half the rate of half precision and FP8
// twice that.
bool rounds(const Operator& op, int compute_capability);

// Returns a product's share of its format's rate if rows are not aligned to 16 bytes, else 1.
double aligned_share(const Operator& op, const Device& device);

// Returns the time of the operator's kernels without launch and gap.
Seconds kernel_time(const OperatorList& list, const Operator& op, const Device& device);

// Evaluates the list. Requires device.flops and device.memory above 0.
StepTimes evaluate_operators(const OperatorList& list, const Device& device);

}  // namespace syncline::operators
