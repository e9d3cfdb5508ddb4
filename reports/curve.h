// Step time over the size of buckets: drawn as text for a terminal, as CSV for other tools
// (figures.h has it as a picture). The size runs on a logarithmic axis; a size of nothing stands at
// its left end.
#pragma once

#include <string>
#include <vector>

#include "core/tune/tuner.h"

namespace syncline::reports {

// At most 72 columns wide and a dozen lines high; empty for fewer than two points.
std::string curve_text(const std::vector<tune::CurvePoint>& curve);

// "bytes,step_time_s" and one line a point.
std::string curve_csv(const std::vector<tune::CurvePoint>& curve);

}  // namespace syncline::reports
