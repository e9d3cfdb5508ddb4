#include "reports/chart/plot.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "reports/chart/markup.h"
#include "reports/chart/scale.h"
#include "reports/chart/svg_text.h"

namespace syncline::reports::chart {
namespace {

const char* unit_word(Unit unit) {
  constexpr const char* kWords[] = {"-", "s", "B", "B/s", "%"};
  return kWords[static_cast<std::size_t>(unit)];
}

std::string axis_data(const ChartAxis& axis, const Scale& scale) {
  return std::string(scale.logarithmic() ? "log " : "lin ") + chars_of(scale.least()) + " " +
         chars_of(scale.most()) + " " + unit_word(axis.unit);
}

std::string drawn(const Stretch& stretch, const PlotLayout& at) {
  const double from = at.x_of(stretch.from);
  return "<rect class=\"band " + colour_class("c", stretch.colour) + "\"" +
         attribute("x", px(from)) + attribute("y", "0") +
         attribute("width", px(std::max(2.0, at.x_of(stretch.to) - from))) +
         attribute("height", px(at.high)) + attribute("data-from", chars_of(stretch.from)) +
         attribute("data-to", chars_of(stretch.to)) + "><title>" + escape(stretch.name) +
         "</title></rect>\n";
}

std::string drawn(const Rule& rule, const PlotLayout& at) {
  const std::string way = rule.upright ? "M" + px(at.x_of(rule.at)) + " 0v" + px(at.high)
                                       : "M0 " + px(at.y_of(rule.at)) + "h" + px(at.broad);
  return "<path class=\"" + line_class(rule.colour, true) + "\" d=\"" + way + "\"" +
         attribute("data-at", chars_of(rule.at)) + kUnscaled + "><title>" + escape(rule.name) +
         "</title></path>\n";
}

std::string drawn(const HeatCell& cell, const Figure& figure, const PlotLayout& at) {
  const double room = at.column();
  const double x = at.x_of(cell.column) - room / 2;
  const double middle = at.middle_of(cell.lane);
  const double y = at.top_of(cell.lane);
  std::string svg =
      "<rect class=\"cell h" + std::to_string(cell.shade) + "\"" + attribute("x", px(x)) +
      attribute("y", px(y)) + attribute("width", px(room)) +
      attribute("height", px(2 * (middle - y))) + attribute("data-value", chars_of(cell.value)) +
      "><title>" +
      escape(figure.up.names[static_cast<std::size_t>(cell.lane)] + ", " +
             figure.across.names[static_cast<std::size_t>(cell.column)] + ": " + cell.text) +
      "</title></rect>\n";
  if (width_of(cell.text) + 4 < room) {
    svg += draw_text(x + room / 2, middle + 4, "middle", cell.text,
                     " class=\"on" + std::to_string(cell.shade) + "\"");
  }
  return svg;
}

std::string drawn(const Box& box, const PlotLayout& at) {
  const double x = at.x_of(box.from);
  const double y = at.middle_of(box.lane) + kLane * (box.low ? 0.18 : -0.5) + (box.low ? 0 : 2);
  const double tall = box.low ? kLane * 0.25 : kLane - 4;
  std::string svg = "<rect class=\"box " + colour_class("c", box.colour) + "\"" +
                    attribute("x", px(x)) + attribute("y", px(y)) +
                    attribute("width", px(std::max(0.3, at.x_of(box.to) - x))) +
                    attribute("height", px(tall)) + attribute("data-from", chars_of(box.from)) +
                    attribute("data-to", chars_of(box.to));
  if (!box.name.empty()) {
    svg += attribute("data-name", escape(box.name)) + "><title>" + escape(box.name) +
           "</title></rect>";
  } else {
    svg += "/>";
  }
  return box.link.empty() ? svg + "\n" : "<a href=\"#" + escape(box.link) + "\">" + svg + "</a>\n";
}

// Draws a stroke along each lane, with a stop at both ends.
std::string drawn_ends(const Figure& figure, const PlotLayout& at) {
  std::string svg;
  for (const auto& end : figure.ends) {
    const double y = at.middle_of(static_cast<int>(end.x));
    const double low = at.x_of(end.low), high = at.x_of(end.high);
    svg += "<path class=\"end\" d=\"M" + px(low) + " " + px(y) + "H" + px(high);
    for (const double x : {low, high}) svg += "M" + px(x) + " " + px(y - 4) + "v8";
    svg += "\"" + attribute("data-low", chars_of(end.low)) +
           attribute("data-high", chars_of(end.high)) + kUnscaled + "/>\n";
  }
  return svg;
}

std::string dots(const std::vector<Point>& points, const PlotLayout& at) {
  std::string way;
  for (const auto& point : points)
    way += "M" + px(at.x_of(point.x)) + " " + px(at.y_of(point.y)) + "h0";
  return way;
}

std::string way_of(const Series& series, const PlotLayout& at) {
  std::string way;
  for (const auto& point : series.points) {
    const std::string x = px(at.x_of(point.x)), y = px(at.y_of(point.y));
    if (way.empty()) {
      way = "M" + x + " " + y;
    } else if (series.steps) {
      way += "H" + x + "V" + y;
    } else {
      way += "L" + x + " " + y;
    }
  }
  if (series.steps && !way.empty()) way += "H" + px(at.broad);
  return way;
}

std::string band_of(const std::vector<Whisker>& band, const PlotLayout& at) {
  std::string way;
  for (const auto& each : band) {
    way += (way.empty() ? "M" : "L") + px(at.x_of(each.x)) + " " + px(at.y_of(each.high));
  }
  for (auto each = band.rbegin(); each != band.rend(); ++each) {
    way += "L" + px(at.x_of(each->x)) + " " + px(at.y_of(each->low));
  }
  return way + "Z";
}

std::string drawn(const Series& series, const PlotLayout& at) {
  const std::string colour = colour_class("l", series.colour);
  std::string data;
  for (const auto* points : {&series.points, &series.hollow}) {
    for (const auto& point : *points) {
      data += (data.empty() ? "" : " ") + chars_of(point.x) + "," + chars_of(point.y);
    }
  }
  std::string labels;
  for (const auto& label : series.labels) {
    labels += (labels.empty() ? "" : "\n") + escape(label);
  }
  std::string svg = "<g class=\"series\"" + attribute("data-name", escape(series.name)) +
                    attribute("data-points", data) +
                    (labels.empty() ? "" : attribute("data-labels", labels)) + "><title>" +
                    escape(series.name) + "</title>";
  const auto path = [&](const std::string& css, const std::string& way) {
    if (!way.empty()) svg += "<path class=\"" + css + "\" d=\"" + way + "\"" + kUnscaled + "/>";
  };
  if (!series.band.empty()) {
    path("band " + colour_class("c", series.colour), band_of(series.band, at));
  }
  std::string whiskers;
  for (const auto& each : series.whiskers) {
    const std::string x = px(at.x_of(each.x));
    whiskers += "M" + x + " " + px(at.y_of(each.low)) + "V" + px(at.y_of(each.high));
  }
  path("whisker " + colour, whiskers);
  const std::string line = line_class(series.colour, series.dashed);
  if (series.line) path(line + (series.faint ? " faint" : ""), way_of(series, at));
  if (series.dots) path("dot " + colour, dots(series.points, at));
  path("dot " + colour, dots(series.hollow, at));
  path("core", dots(series.hollow, at));
  return svg + "</g>\n";
}

}  // namespace

std::string plot_svg(const Figure& figure, const PlotLayout& at) {
  std::string svg = "<svg class=\"plot\"" + attribute("x", px(at.left)) +
                    attribute("y", px(at.top)) + attribute("width", px(at.broad)) +
                    attribute("height", px(at.high)) +
                    attribute("viewBox", "0 0 " + px(at.broad) + " " + px(at.high)) +
                    attribute("preserveAspectRatio", "none");
  if (figure.across.names.empty()) svg += attribute("data-x", axis_data(figure.across, at.across));
  if (figure.up.names.empty()) svg += attribute("data-y", axis_data(figure.up, at.up));
  svg += ">\n";
  for (const auto& stretch : figure.stretches) svg += drawn(stretch, at);
  for (const auto& cell : figure.cells) svg += drawn(cell, figure, at);
  for (const auto& box : figure.boxes) svg += drawn(box, at);
  svg += drawn_ends(figure, at);
  for (const auto& rule : figure.rules) svg += drawn(rule, at);
  // The first is the most important, so it lies on top.
  for (auto one = figure.series.rbegin(); one != figure.series.rend(); ++one) {
    svg += drawn(*one, at);
  }
  return svg + "</svg>\n";
}

}  // namespace syncline::reports::chart
