// The axes of a figure: frame, grid, ticks, names of lanes, titles.
#pragma once

#include <string>

#include "reports/chart/figure.h"
#include "reports/chart/layout.h"

namespace syncline::reports::chart {

// A part of a drawing and its lower end: pixels from the top.
struct DrawnPart {
  std::string svg;
  double end = 0;
};

DrawnPart axes_svg(const Figure& figure, const PlotLayout& at);

}  // namespace syncline::reports::chart
