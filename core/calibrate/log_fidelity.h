// Published logs as fidelity tables: calibrate on some, predict others, and keep the errors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/measure/fidelity.h"

namespace syncline::calibrate {

// One table for each comparison and predicted log. Sizes below `from_bytes` are left out. Throws
// InputError for a wrong list. `progress` is called after each comparison with how many are done
// and wanted, `interrupted` asked between them.
std::vector<measure::FidelityTable> log_fidelity(
    const std::string& path, const std::function<void(std::size_t, std::size_t)>& progress,
    const std::function<bool()>& interrupted);

}  // namespace syncline::calibrate
