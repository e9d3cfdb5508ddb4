// The plot of a figure: its marks, without axes and names.
#pragma once

#include <string>

#include "reports/chart/figure.h"
#include "reports/chart/layout.h"

namespace syncline::reports::chart {

// Draws the marks as a drawing inside the drawing: it cuts off the parts outside, and the page's
// script zooms by its viewBox alone.
std::string plot_svg(const Figure& figure, const PlotLayout& at);

}  // namespace syncline::reports::chart
