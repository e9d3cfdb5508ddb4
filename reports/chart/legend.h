// The legend of a figure: its keys, series, rules and stretches.
#pragma once

#include "reports/chart/axes.h"
#include "reports/chart/figure.h"
#include "reports/chart/layout.h"

namespace syncline::reports::chart {

// Draws the entries side by side, as many as fit into a line. `above`: pixels to the end of all
// that stands above it.
DrawnPart legend_svg(const Figure& figure, const PlotLayout& at, double above);

}  // namespace syncline::reports::chart
