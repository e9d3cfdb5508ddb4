// The answers of `syncline calibrate` for terminals, documents and programs.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/device_fit.h"
#include "studies/calibrate/step_fit.h"

namespace syncline::reports {

// Of logs. The page: every size measured, fitted and its error; then the tables predicted; a plot;
// what to know. CSV: one line a size.
Answer answer_of(const calibrate::LogCalibration& calibration);

// What a table is of: "all_reduce", "all_reduce by a forced ring".
std::string table_test(const calibrate::ComparedTable& table);

// Bus bandwidth over bytes a second, by the collective and its ranks (nccl-tests'
// doc/PERFORMANCE.md): what crosses each rank's link, so that it compares with the link's rate.
double bus_share(const calibrate::ComparedTable& table);

// Measured dots and the cost model's lines of all tables, fitted and predicted, as an SVG document.
std::string calibration_svg(const calibrate::LogCalibration& calibration);

// --kernels: each kernel as measured and as the device's one rate of memory costs it.
Answer answer_of(const calibrate::KernelCosts& costs);

// --steps: each measured step as predicted before and after, and what the device was found to lose.
Answer answer_of(const calibrate::StepFit& fit);

// Time, bus bandwidth and error over payload: measured, fitted, predicted.
std::vector<Illustration> figures_of(const calibrate::LogCalibration& calibration);

}  // namespace syncline::reports
