#include "reports/chart/legend.h"

#include <algorithm>
#include <set>
#include <string>

#include "reports/chart/markup.h"
#include "reports/chart/svg_text.h"

namespace syncline::reports::chart {
namespace {

// Owns the rows of entries; the last row is being filled.
class LegendRows {
 public:
  LegendRows(double left, double top) : left_(left), x_(left), y_(top) {}

  void put(const std::string& name, const std::string& glyph) {
    const auto lines = lines_of(name, kWide - left_ - 46);
    const double room = 30 + width_of(lines) + 16;
    if (x_ > left_ && x_ + room > kWide) {
      x_ = left_;
      y_ += below_;
      below_ = kRow;
    }
    svg_ += "<g transform=\"translate(" + px(x_) + " " + px(y_) + ")\">" + glyph +
            draw_text(30, 4, "start", lines) + "</g>\n";
    x_ += room;
    below_ = std::max(below_, height_of(lines) + kRow - kLine);
  }

  bool empty() const { return svg_.empty(); }
  DrawnPart drawn() const { return {svg_, y_ + below_ - 4}; }

 private:
  double left_;
  double x_;
  double y_;
  double below_ = kRow;  // pixels of the last row
  std::string svg_;
};

std::string glyph_of(const Series& series) {
  std::string glyph;
  if (series.line) {
    glyph += "<path class=\"" + line_class(series.colour, series.dashed) + "\" d=\"M0 0h22\"/>";
  }
  if (series.dots || !series.hollow.empty()) {
    glyph += "<path class=\"dot " + colour_class("l", series.colour) + "\" d=\"M11 0h0\"/>";
  }
  if (!series.dots && !series.hollow.empty()) glyph += "<path class=\"core\" d=\"M11 0h0\"/>";
  return glyph;
}

}  // namespace

DrawnPart legend_svg(const Figure& figure, const PlotLayout& at, double above) {
  LegendRows rows(at.left, above + 8);
  for (const auto& key : figure.keys) {
    const std::string shade =
        key.shade ? "h" + std::to_string(key.colour) : colour_class("c", key.colour);
    rows.put(key.name, "<rect class=\"" + shade + " cell\" y=\"-6\" width=\"22\" height=\"12\"/>");
  }
  for (const auto& one : figure.series) {
    if (!one.name.empty() && !one.faint) rows.put(one.name, glyph_of(one));
  }
  for (const auto& rule : figure.rules) {
    rows.put(rule.name, "<path class=\"" + line_class(rule.colour, true) + "\" d=\"M0 0h22\"/>");
  }
  std::set<std::string> told;  // several stretches may have the same name
  for (const auto& stretch : figure.stretches) {
    if (!told.insert(stretch.name).second) continue;
    rows.put(stretch.name, "<rect class=\"band " + colour_class("c", stretch.colour) +
                               "\" y=\"-6\" width=\"22\" height=\"12\"/>");
  }
  return rows.empty() ? DrawnPart{{}, above} : rows.drawn();
}

}  // namespace syncline::reports::chart
