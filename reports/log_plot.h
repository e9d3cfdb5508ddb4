// Points and curves over payload and time, both axes logarithmic, as text for a terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace syncline::reports {

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // bytes, seconds; measured
  std::vector<std::pair<double, double>> curve;   // fitted, by ascending bytes
};

// Each series' points by a letter of its own, curves by dots. Empty where there is nothing to draw.
std::string text_plot(const std::vector<PlotSeries>& series);

}  // namespace syncline::reports
