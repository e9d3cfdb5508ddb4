// Plots as text for a terminal, over a logarithmic axis of bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "studies/tune/tuner.h"

namespace syncline::reports {

// Returns a plot of step time over bucket size, at most 72 columns wide and a dozen lines high;
// empty for fewer than two points. A size of 0 lies at the left end.
std::string curve_text(const std::vector<tune::CurvePoint>& curve);

// Returns "bytes,step_time_s" and one line per point.
std::string curve_csv(const std::vector<tune::CurvePoint>& curve);

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // bytes, seconds; measured
  std::vector<std::pair<double, double>> curve;   // fitted, by ascending bytes
};

// Returns a plot of each series' points as letters and curves as dots; seconds on a logarithmic
// axis too. Empty if there are no points.
std::string text_plot(const std::vector<PlotSeries>& series);

}  // namespace syncline::reports
