// The answer of `syncline calibrate --kernels`: each kernel as measured and as the device's one
// rate of memory prices it.
#pragma once

#include <string>

#include "core/calibrate/kernel_costs.h"
#include "reports/answer.h"

namespace syncline::reports {

// JSON: {"gpu", "memory_gbytes_per_s", "launch_us", "kernel_gap_us", "kernels": [{"name", "kind",
// "measured_s", "priced_s", "error_percent", "fitted"}]}
// The costs must outlive the answer.
Answer answer_of(const calibrate::KernelCosts& costs);

}  // namespace syncline::reports
