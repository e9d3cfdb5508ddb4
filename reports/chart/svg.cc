#include <string>

#include "reports/chart/axes.h"
#include "reports/chart/figure.h"
#include "reports/chart/layout.h"
#include "reports/chart/legend.h"
#include "reports/chart/markup.h"
#include "reports/chart/plot.h"
#include "reports/chart/svg_text.h"

namespace syncline::reports::chart {
namespace {

constexpr double kHead = 30;    // pixels of a document's title
constexpr double kTitle = 0.8;  // factor on a line's width: the title's letters are larger

// Draws a figure below `head`, which is `head_high` pixels high.
std::string drawing(const Figure& figure, const std::string& head, double head_high) {
  const PlotLayout at(figure, kTop + head_high);
  const DrawnPart axes = axes_svg(figure, at);
  const DrawnPart legend = legend_svg(figure, at, axes.end);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\"" +
         attribute("viewBox", "0 0 " + px(kWide) + " " + px(legend.end)) +
         attribute("aria-label", escape(figure.title)) + ">\n" + head + axes.svg +
         plot_svg(figure, at) + legend.svg + "</svg>\n";
}

}  // namespace

std::string svg_file(const Figure& figure) {
  const auto title = lines_of(figure.title, kTitle * (kWide - 2 * kTop));
  const std::string head = "<style>" + palette_css() +
                           "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n" +
                           draw_text(14, 24, "start", title, " class=\"head\"");
  return drawing(figure, head, kHead + height_of(title) - kLine);
}

std::string svg_inline(const Figure& figure) { return drawing(figure, "", 0); }

}  // namespace syncline::reports::chart
