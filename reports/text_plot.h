// Plots as text for a terminal, over a logarithmic axis of bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "studies/tune/tuner.h"

namespace syncline::reports {

// Step time over the size of buckets, at most 72 columns wide and a dozen lines high; empty for
// fewer than two points. A size of nothing stands at the left end.
std::string curve_text(const std::vector<tune::CurvePoint>& curve);

// "bytes,step_time_s" and one line a point.
std::string curve_csv(const std::vector<tune::CurvePoint>& curve);

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // bytes, seconds; measured
  std::vector<std::pair<double, double>> curve;   // fitted, by ascending bytes
};

// Each series' points by a letter of its own, curves by dots, seconds too on a logarithmic axis.
// Empty where there is nothing to draw.
std::string text_plot(const std::vector<PlotSeries>& series);

}  // namespace syncline::reports
