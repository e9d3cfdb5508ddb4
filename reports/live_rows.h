// The rows of several live runs in one table: what was predicted, then measured.
#pragma once

#include <string>
#include <vector>

#include "core/measure/validation_file.h"
#include "reports/page.h"

namespace syncline {

Page live_rows_page(const std::vector<LiveFile>& files);
// {"rows": [{"scenario", "ranks", "strategy", "predicted_s", ...}], "median_error_percent", ...}
std::string live_rows_json(const std::vector<LiveFile>& files);

}  // namespace syncline
