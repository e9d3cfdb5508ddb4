#pragma once

namespace syncline::calibrate {

// Significant digits of a fitted figure in what is written.
inline constexpr int kFittedDigits = 5;

}  // namespace syncline::calibrate
