// The answer of `syncline calibrate` for terminals, documents and programs.
#pragma once

#include <string>

#include "core/calibrate/calibration.h"
#include "reports/answer.h"

namespace syncline::reports {

// The page: every size measured, fitted and its error; then the tables predicted; a plot; what to
// know. CSV: one line a size. JSON: {"in_sample_percent", "left_out_percent", "fitted": [{"file",
// "test", "nodes", "gpus_per_node", "clean", "outlier_bytes", "model", errors, "rows": [{"bytes",
// "measured_s", "predicted_s", "low_s", "high_s" (the 80 % interval), "error_percent",
// "bus_bytes_per_s" (measured, as nccl-tests counts it), "in_range"}]}], "against": likewise, "law"
// (as in the cluster), "facts", "warnings"}; left_out_percent is null where it is not known. The
// calibration must outlive the answer.
Answer answer_of(const calibrate::LogCalibration& calibration);

// What a table is of: "all_reduce", "all_reduce by a forced ring".
std::string table_test(const calibrate::ComparedTable& table);

// Bus bandwidth over bytes a second, by the collective and its ranks (nccl-tests'
// doc/PERFORMANCE.md): what crosses each rank's link, so that it compares with the link's rate.
double bus_share(const calibrate::ComparedTable& table);

// Measured dots and the law's lines of all tables, fitted and predicted, as an SVG document.
std::string calibration_svg(const calibrate::LogCalibration& calibration);

}  // namespace syncline::reports
