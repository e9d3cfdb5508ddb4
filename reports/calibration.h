// The answers of `syncline calibrate` for terminals, documents and programs.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/device_fit.h"
#include "studies/calibrate/step_fit.h"

namespace syncline::reports {

// Returns the answer for logs. The page: every size measured, fitted and its error; the predicted
// tables; a plot; facts to know. CSV: one line per size.
Answer answer_of(const calibrate::LogCalibration& calibration);

// Returns the collective of a table: "all_reduce", "all_reduce by a forced ring".
std::string table_test(const calibrate::ComparedTable& table);

// Returns bus bandwidth / (bytes / time), by the collective and its ranks (nccl-tests'
// doc/PERFORMANCE.md): the traffic of each rank's link, comparable with the link's rate.
double bus_share(const calibrate::ComparedTable& table);

// Returns an SVG document: measured dots and the cost model's lines, fitted and predicted.
std::string calibration_svg(const calibrate::LogCalibration& calibration);

// Returns the answer for --kernels: each as measured and as predicted by one memory bandwidth.
Answer answer_of(const calibrate::KernelCosts& costs);

// Returns the answer for --steps: measured steps, predictions before and after, and the fit.
Answer answer_of(const calibrate::StepFit& fit);

// Returns charts of time, bus bandwidth and error over payload: measured, fitted, predicted.
std::vector<Illustration> figures_of(const calibrate::LogCalibration& calibration);

}  // namespace syncline::reports
