#include "reports/chart/svg_text.h"

#include <algorithm>
#include <cmath>

#include "reports/chart/figure.h"
#include "reports/chart/markup.h"
#include "reports/chart/scale.h"

namespace syncline::reports::chart {
namespace {

constexpr int kDashes = 4;  // kinds of lines, with the solid one

}  // namespace

std::string px(double value) { return chars_of(std::round(value * 10) / 10 + 0.0); }

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}

std::string draw_text(double x, double y, const char* anchor, const std::string& text,
                      const std::string& more) {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\"" + more +
         ">" + escape(text) + "</text>\n";
}

double height_of(const std::vector<std::string>& lines) {
  return kLine * static_cast<double>(lines.size());
}

double width_of(const std::vector<std::string>& lines) {
  double width = 0;
  for (const auto& line : lines) width = std::max(width, chart::width_of(line));
  return width;
}

std::string draw_text(double x, double y, const char* anchor, const std::vector<std::string>& lines,
                      const std::string& more) {
  std::string text;
  for (const auto& line : lines) {
    text += draw_text(x, y, anchor, line, more);
    y += kLine;
  }
  return text;
}

std::string colour_class(const char* letter, int colour) {
  return letter + std::to_string(colour % kColours);
}

std::string line_class(int colour, bool dashed) {
  const int dash = (colour / kColours + (dashed ? 1 : 0)) % kDashes;
  return "l " + colour_class("l", colour) + (dash == 0 ? "" : " dash" + std::to_string(dash));
}

}  // namespace syncline::reports::chart
