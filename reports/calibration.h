// The answer of `syncline calibrate` for terminals, documents and programs.
#pragma once

#include <string>

#include "core/calibrate/calibration.h"

namespace syncline {

// Every size: measured, fitted, error; then the tables predicted; a plot; what to know.
std::string calibration_text(const LogCalibration& calibration);
std::string calibration_markdown(const LogCalibration& calibration);

// {"in_sample_percent", "left_out_percent", "against": [{"file", "rows": [{"bytes", "measured_s",
// "predicted_s"}]}]}; left_out_percent is null where it is not known.
std::string calibration_json(const LogCalibration& calibration);

// Measured dots and the law's lines of all tables, fitted and predicted.
std::string calibration_svg(const LogCalibration& calibration);

}  // namespace syncline
