// Published logs as fidelity tables: calibrate on some, predict others, and keep the errors.
//
// A list of such comparisons is a JSON file beside the logs:
//   {"from_bytes": 65536, "tables": [
//     {"name": "...", "calibrate": [FILE, ...], "predict": [FILE, ...]},
//     {"name": "...", "each_alone": [FILE, ...]},
//     {"name": "...", "each_row": [FILE, ...]},
//     {"name": "...", "each_count": [FILE, ...]}]}
// Files are named from the list's folder, with @NODESxGPUS where a log does not say. `each_alone`
// fits every clean table by itself: it has calibrated rows only. `each_row` leaves out rows of each
// clean table in turn (twelve of each) and predicts them from its others, `each_count` each count
// of nodes and GPUs from the other tables. Predicted rows have 80 % intervals.
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
