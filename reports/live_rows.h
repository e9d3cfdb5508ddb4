// The rows of several live runs in one table: what was predicted, then measured.
#pragma once

#include <string>
#include <vector>

#include "core/measure/validation_file.h"
#include "reports/answer.h"

namespace syncline::reports {

// JSON: {"rows": [{"scenario", "ranks", "strategy", "predicted_s", ...}], "median_error_percent",
// ...}. The files must outlive the answer.
Answer answer_of(const std::vector<measure::LiveFile>& files);

}  // namespace syncline::reports
