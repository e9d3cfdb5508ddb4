// A figure drawn as SVG: a plot with round ticks and units, its legend below it.
//
// What stands in the file for programs and for the page's script: each series has its points as
// data-points="x,y x,y ..." and its name as data-name, each box data-from, data-to and data-name,
// each cell data-value: figures in SI units with all digits. The plot has data-x and data-y, "lin"
// or "log", the ends of the axis and what it counts. Everything is drawn: whoever fills a figure
// sees to it that it is not too much.
#pragma once

#include <string>

#include "reports/chart/figure.h"

namespace syncline::reports::chart {

// A whole document with its title and its colours.
std::string svg_file(const Figure& figure);

// For a page that has palette_css() in its style sheet and the title outside.
std::string svg_inline(const Figure& figure);

}  // namespace syncline::reports::chart
