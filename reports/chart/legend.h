// The legend of a figure: its keys, series, rules and stretches.
#pragma once

#include "reports/chart/axes.h"
#include "reports/chart/figure.h"
#include "reports/chart/layout.h"

namespace syncline::reports::chart {

// Draws the entries side by side, in lines as wide as the drawing. `above`: the end of the parts
// above it, in pixels from the top.
DrawnPart legend_svg(const Figure& figure, const PlotLayout& at, double above);

}  // namespace syncline::reports::chart
