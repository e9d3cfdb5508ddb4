#include "reports/chart/axes.h"

#include <cmath>
#include <cstddef>

#include "reports/chart/markup.h"
#include "reports/chart/scale.h"
#include "reports/chart/svg_text.h"

namespace syncline::reports::chart {
namespace {

constexpr double kTickRow = 16;  // pixels from the plot to the text below it

// Writes the ticks below the plot, and adds their lines to the grid.
DrawnPart below_numbers(const PlotLayout& at, std::string& grid) {
  DrawnPart below{{}, at.foot() + kTickRow};
  for (const auto& tick : at.across.ticks(9)) {
    const double x = at.left + at.x_of(tick.value);
    grid += "M" + px(x) + " " + px(at.top) + "v" + px(at.high);
    below.svg += draw_text(x, at.foot() + kTickRow, "middle", tick.text);
  }
  return below;
}

// Writes the names below the plot: upright if they are too wide to be next to each other, and only
// the readable share of them.
DrawnPart below_names(const std::vector<std::string>& names, const PlotLayout& at) {
  const double foot = at.foot();
  const double widest = width_of(names);
  const double room = at.column();
  const bool upright = widest + 10 > room;
  const auto stride = static_cast<std::size_t>(upright ? std::ceil(kLine / room) : 1);
  DrawnPart below{{}, upright ? foot + widest + 10 : foot + kTickRow};
  for (std::size_t i = 0; i < names.size(); i += stride) {
    const double x = at.left + at.x_of(static_cast<double>(i));
    if (upright) {
      below.svg += draw_text(x + 4, foot + 8, "end", names[i],
                             " transform=\"rotate(-90 " + px(x + 4) + " " + px(foot + 8) + ")\"");
    } else {
      below.svg += draw_text(x, foot + kTickRow, "middle", names[i]);
    }
  }
  return below;
}

// Writes the ticks left of the plot, and adds their lines to the grid.
std::string beside_numbers(const PlotLayout& at, std::string& grid) {
  std::string text;
  for (const auto& tick : at.up.ticks(8)) {
    const double y = at.top + at.y_of(tick.value);
    grid += "M" + px(at.left) + " " + px(y) + "h" + px(at.broad);
    text += draw_text(at.left - 6, y + 4, "end", tick.text);
  }
  return text;
}

std::string lane_names(const Figure& figure, const PlotLayout& at) {
  std::string text;
  for (std::size_t lane = 0; lane < at.lanes.size(); ++lane) {
    const double y = at.top + at.middle_of(static_cast<int>(lane)) + 4;
    text += draw_text(at.left - 6, y - (height_of(at.lanes[lane]) - kLine) / 2, "end",
                      at.lanes[lane], is_best(figure, lane) ? " class=\"best\"" : "");
  }
  return text;
}

// Draws two strokes at each broken bar, and writes its end after them.
std::string broken_bars(const Figure& figure, const PlotLayout& at) {
  std::string text, strokes;
  for (const auto& [lane, end] : at.broken) {
    const double x = at.left + at.broad, y = at.foot() - at.high + at.middle_of(lane);
    for (const double stroke : {x + 2, x + 7}) {
      strokes += "M" + px(stroke) + " " + px(y + 7) + "l5 -14";
    }
    text += draw_text(x + 16, y + 4, "start", value_text(figure.across.unit, end));
  }
  return strokes.empty() ? "" : text + "<path class=\"frame\" d=\"" + strokes + "\"/>\n";
}

}  // namespace

DrawnPart axes_svg(const Figure& figure, const PlotLayout& at) {
  std::string grid;
  std::string text = figure.up.names.empty() ? beside_numbers(at, grid) : lane_names(figure, at);
  const DrawnPart below =
      figure.across.names.empty() ? below_numbers(at, grid) : below_names(figure.across.names, at);
  const double middle = at.top + at.high / 2;
  if (!figure.up.title.empty()) {
    text += draw_text(12, middle, "middle", at.beside,
                      " transform=\"rotate(-90 12 " + px(middle) + ")\"");
  }
  const auto under = lines_of(at.across.title(), at.broad);
  text += draw_text(at.left + at.broad / 2, below.end + kRow, "middle", under);
  text += broken_bars(figure, at);
  return {"<path class=\"grid\" d=\"" + grid + "\"/>\n<g class=\"below\">" + below.svg + "</g>\n" +
              text + "<path class=\"frame\" d=\"M" + px(at.left) + " " + px(at.top) + "v" +
              px(at.high) + "h" + px(at.broad) + "\"/>\n",
          below.end + (height_of(under) + kLine)};
}

}  // namespace syncline::reports::chart
