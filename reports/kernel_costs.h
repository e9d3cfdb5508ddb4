// The answer of `syncline calibrate --kernels`: each kernel as measured and as the device's one
// rate of memory prices it.
#pragma once

#include <string>

#include "core/calibrate/kernel_costs.h"
#include "reports/page.h"

namespace syncline {

Page kernel_costs_page(const KernelCosts& costs);

// {"gpu", "memory_gbytes_per_s", "launch_us", "kernel_gap_us", "kernels": [{"name", "kind",
// "measured_s", "priced_s", "error_percent", "fitted"}]}
std::string kernel_costs_json(const KernelCosts& costs);

}  // namespace syncline
