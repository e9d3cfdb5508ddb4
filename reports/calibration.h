// The answers of `syncline calibrate` for terminals, documents and programs.
#pragma once

#include <string>

#include "core/calibrate/calibration.h"
#include "core/calibrate/device_fit.h"
#include "core/calibrate/step_fit.h"
#include "reports/answer.h"

namespace syncline::reports {

// Of logs. The page: every size measured, fitted and its error; then the tables predicted; a plot;
// what to know. CSV: one line a size. JSON: {"in_sample_percent", "left_out_percent", "fitted":
// [{"file", "test", "nodes", "gpus_per_node", "clean", "outlier_bytes", "model", errors, "rows":
// [{"bytes", "measured_s", "predicted_s", "low_s", "high_s" (the 80 % interval), "error_percent",
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

// --kernels: each kernel as measured and as the device's one rate of memory prices it.
// JSON: {"gpu", "memory_gbytes_per_s", "launch_us", "kernel_gap_us", "kernels": [{"name", "kind",
// "measured_s", "priced_s", "error_percent", "fitted"}]}
// The costs must outlive the answer.
Answer answer_of(const calibrate::KernelCosts& costs);

// --steps: each measured step as predicted before and after, and what the device was found to lose.
// JSON: {"rows": [{"row", "measured_s", "before_s", "after_s", "before_error_percent",
// "after_error_percent", "fitted"}], "values": [{"key" (of cluster.device, in its unit), "before",
// "value", "low", "high" (the 80 % interval), "told" (whether the rows say anything of it)}],
// "notes"}. CSV: the rows. The fit must outlive the answer.
Answer answer_of(const calibrate::StepFit& fit);

}  // namespace syncline::reports
