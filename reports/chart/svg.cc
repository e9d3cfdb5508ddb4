#include "reports/chart/figure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reports/chart/markup.h"
#include "reports/chart/scale.h"

namespace syncline::reports::chart {
namespace {

constexpr double kWide = 860;
constexpr double kRight = 30;  // room on the right, for half a tick's label
constexpr double kTop = 10;
constexpr double kHead = 30;    // of a document's title
constexpr double kTitle = 0.8;  // how much less letters of a title fit into a line
constexpr double kPlotHigh = 320;
constexpr double kLane = 22;    // of one line
constexpr double kRow = 18;     // of text
constexpr double kLine = 14;    // of one text that has several
constexpr double kNames = 300;  // room for the names of lanes
constexpr double kBold = 1.12;  // how much wider bold letters are
constexpr int kDashes = 4;      // kinds of lines, the full one among them

// Pixels, to a tenth; a whole number without a point.
std::string px(double value) { return chars_of(std::round(value * 10) / 10 + 0.0); }

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}

std::string written(double x, double y, const char* anchor, const std::string& text,
                    const std::string& more = "") {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\"" + more +
         ">" + escaped(text) + "</text>\n";
}

double height_of(const std::vector<std::string>& lines) {
  return kLine * static_cast<double>(lines.size());
}

double width_of(const std::vector<std::string>& lines) {
  double width = 0;
  for (const auto& line : lines) width = std::max(width, chart::width_of(line));
  return width;
}

// Lines below each other, the first at this height.
std::string written(double x, double y, const char* anchor, const std::vector<std::string>& lines,
                    const std::string& more = "") {
  std::string text;
  for (const auto& line : lines) {
    text += written(x, y, anchor, line, more);
    y += kLine;
  }
  return text;
}

const char* unit_word(Unit unit) {
  constexpr const char* kWords[] = {"-", "s", "B", "B/s", "%"};
  return kWords[static_cast<std::size_t>(unit)];
}

std::string axis_data(const ChartAxis& axis, const Scale& scale) {
  return std::string(scale.logarithmic() ? "log " : "lin ") + chars_of(scale.least()) + " " +
         chars_of(scale.most()) + " " + unit_word(axis.unit);
}

std::string colour_class(const char* letter, int colour) {
  return letter + std::to_string(colour % kColours);
}

// Series beyond the colours share them, by other strokes.
std::string line_class(int colour, bool dashed) {
  const int dash = (colour / kColours + (dashed ? 1 : 0)) % kDashes;
  return "l " + colour_class("l", colour) + (dash == 0 ? "" : " dash" + std::to_string(dash));
}

// Every value that an axis must show.
struct Values {
  std::vector<double> across;
  std::vector<double> up;
};

void put_series(const Series& one, Values& values) {
  for (const auto* points : {&one.points, &one.hollow}) {
    for (const auto& point : *points) {
      values.across.push_back(point.x);
      values.up.push_back(point.y);
    }
  }
  for (const auto* intervals : {&one.band, &one.whiskers}) {
    for (const auto& interval : *intervals) {
      values.across.push_back(interval.x);
      values.up.push_back(interval.low);
      values.up.push_back(interval.high);
    }
  }
}

Values values_of(const Figure& figure) {
  Values values;
  for (const auto& one : figure.series) put_series(one, values);
  for (const auto& rule : figure.rules) {
    (rule.upright ? values.across : values.up).push_back(rule.at);
  }
  for (const auto& box : figure.boxes) {
    values.across.push_back(box.from);
    values.across.push_back(box.to);
  }
  for (const auto& end : figure.ends) {
    values.across.push_back(end.low);
    values.across.push_back(end.high);
  }
  if (figure.across.cut > 0) {
    for (double& value : values.across) value = std::min(value, figure.across.cut);
  }
  return values;
}

class Drawing {
 public:
  explicit Drawing(const Figure& figure)
      : figure_(figure),
        values_(values_of(figure)),
        across_(figure.across, values_.across),
        up_(figure.up, values_.up) {
    const auto& names = figure.up.names;
    double label = 0;
    for (std::size_t lane = 0; lane < names.size(); ++lane) {
      const bool best = is_best(lane);
      const double room = best ? kNames / kBold : kNames;
      lanes_.push_back(lines_of((best ? kStar : "") + names[lane], room));
      label = std::max(label, width_of(lanes_.back()) * (best ? kBold : 1));
      tops_.push_back(tops_.back() + height_of(lanes_.back()) + kLane - kLine);
    }
    high_ = names.empty() ? kPlotHigh : tops_.back();
    if (names.empty()) {
      for (const auto& tick : up_.ticks(8)) label = std::max(label, chart::width_of(tick.text));
    }
    beside_ = lines_of(up_.title(), high_ + kTop);
    left_ = label + 14;
    if (!figure.up.title.empty()) left_ += height_of(beside_) + kRow - kLine;
    broad_ = kWide - left_ - std::max(kRight, find_broken());
  }

  std::string text(bool document) {
    const auto head = lines_of(figure_.title, kTitle * (kWide - 2 * kTop));
    top_ = kTop + (document ? kHead + height_of(head) - kLine : 0);
    std::string body = axes() + plot();
    body += legend();  // stands below the axes
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\"";
    svg += attribute("viewBox", "0 0 " + px(kWide) + " " + px(end_));
    svg += attribute("aria-label", escaped(figure_.title)) + ">\n";
    if (document) {
      svg += "<style>" + palette_css() + "</style>\n<rect class=\"paper\" width=\"100%\" " +
             "height=\"100%\"/>\n" + written(14, 24, "start", head, " class=\"head\"");
    }
    return svg + body + "</svg>\n";
  }

 private:
  // Places in the plot; its own corner is at 0, 0.
  double x_of(double value) const {
    const auto names = static_cast<double>(figure_.across.names.size());
    return broad_ * (names > 0 ? (value + 0.5) / names : across_.share(value));
  }
  double y_of(double value) const { return high_ * (1 - up_.share(value)); }
  double middle_of(int lane) const {
    const auto place = static_cast<std::size_t>(lane);
    return (tops_[place] + tops_[place + 1]) / 2;
  }

  std::string axes() {
    std::string grid, text;
    if (figure_.up.names.empty()) {
      for (const auto& tick : up_.ticks(8)) {
        const double y = top_ + y_of(tick.value);
        grid += "M" + px(left_) + " " + px(y) + "h" + px(broad_);
        text += written(left_ - 6, y + 4, "end", tick.text);
      }
    } else {
      text += lane_names();
    }
    const double foot = top_ + high_;
    end_ = foot + 16;
    const std::string below =
        figure_.across.names.empty() ? below_numbers(foot, grid) : below_names(foot);
    const double middle = top_ + high_ / 2;
    if (!figure_.up.title.empty()) {
      text += written(12, middle, "middle", beside_,
                      " transform=\"rotate(-90 12 " + px(middle) + ")\"");
    }
    const auto under = lines_of(across_.title(), broad_);
    text += written(left_ + broad_ / 2, end_ + kRow, "middle", under) + broken(foot);
    end_ += height_of(under) + kLine;
    return "<path class=\"grid\" d=\"" + grid + "\"/>\n<g class=\"below\">" + below + "</g>\n" +
           text + "<path class=\"frame\" d=\"M" + px(left_) + " " + px(top_) + "v" + px(high_) +
           "h" + px(broad_) + "\"/>\n";
  }

  std::string below_numbers(double foot, std::string& grid) const {
    std::string below;
    for (const auto& tick : across_.ticks(9)) {
      const double x = left_ + x_of(tick.value);
      grid += "M" + px(x) + " " + px(top_) + "v" + px(high_);
      below += written(x, foot + 16, "middle", tick.text);
    }
    return below;
  }

  // Upright where there is no room for them beside each other; as many as can be read.
  std::string below_names(double foot) {
    const auto& names = figure_.across.names;
    const double widest = width_of(names);
    const double room = broad_ / static_cast<double>(names.size());
    const bool upright = widest + 10 > room;
    const auto stride = static_cast<std::size_t>(upright ? std::ceil(kLine / room) : 1);
    std::string below;
    for (std::size_t i = 0; i < names.size(); i += stride) {
      const double x = left_ + x_of(static_cast<double>(i));
      if (upright) {
        below += written(x + 4, foot + 8, "end", names[i],
                         " transform=\"rotate(-90 " + px(x + 4) + " " + px(foot + 8) + ")\"");
      } else {
        below += written(x, foot + 16, "middle", names[i]);
      }
    }
    if (upright) end_ = foot + widest + 10;
    return below;
  }

  bool is_best(std::size_t lane) const {
    return std::ranges::find(figure_.up.best, lane) != figure_.up.best.end();
  }

  std::string lane_names() const {
    std::string text;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      const double y = top_ + middle_of(static_cast<int>(lane)) + 4;
      text += written(left_ - 6, y - (height_of(lanes_[lane]) - kLine) / 2, "end", lanes_[lane],
                      is_best(lane) ? " class=\"best\"" : "");
    }
    return text;
  }

  // The lanes that go on beyond the axis; gives the room that their ends need right of the plot.
  double find_broken() {
    double room = 0;
    if (figure_.across.cut <= 0) return room;
    for (const auto& box : figure_.boxes) {
      if (box.to > across_.most() && !box.low) {
        broken_[box.lane] = std::max(broken_[box.lane], box.to);
      }
    }
    for (const auto& [lane, end] : broken_) {
      room = std::max(room, chart::width_of(value_text(figure_.across.unit, end)) + 24);
    }
    return room;
  }

  // Two strokes where a bar is broken, and its end behind them.
  std::string broken(double foot) const {
    std::string text, strokes;
    for (const auto& [lane, end] : broken_) {
      const double x = left_ + broad_, y = foot - high_ + middle_of(lane);
      for (const double at : {x + 2, x + 7}) strokes += "M" + px(at) + " " + px(y + 7) + "l5 -14";
      text += written(x + 16, y + 4, "start", value_text(figure_.across.unit, end));
    }
    return strokes.empty() ? "" : text + "<path class=\"frame\" d=\"" + strokes + "\"/>\n";
  }

  // A drawing inside the drawing: it cuts off what lies outside, and the page's script zooms by its
  // viewBox alone.
  std::string plot() const {
    std::string svg = "<svg class=\"plot\"" + attribute("x", px(left_)) + attribute("y", px(top_)) +
                      attribute("width", px(broad_)) + attribute("height", px(high_)) +
                      attribute("viewBox", "0 0 " + px(broad_) + " " + px(high_)) +
                      attribute("preserveAspectRatio", "none");
    if (figure_.across.names.empty())
      svg += attribute("data-x", axis_data(figure_.across, across_));
    if (figure_.up.names.empty()) svg += attribute("data-y", axis_data(figure_.up, up_));
    svg += ">\n";
    for (const auto& stretch : figure_.stretches) svg += drawn(stretch);
    for (const auto& cell : figure_.cells) svg += drawn(cell);
    for (const auto& box : figure_.boxes) svg += drawn(box);
    svg += drawn_ends();
    for (const auto& rule : figure_.rules) svg += drawn(rule);
    // The first is the most important, so it lies on top.
    for (auto one = figure_.series.rbegin(); one != figure_.series.rend(); ++one) {
      svg += drawn(*one);
    }
    return svg + "</svg>\n";
  }

  std::string drawn(const Stretch& stretch) const {
    const double from = x_of(stretch.from);
    return "<rect class=\"band " + colour_class("c", stretch.colour) + "\"" +
           attribute("x", px(from)) + attribute("y", "0") +
           attribute("width", px(std::max(2.0, x_of(stretch.to) - from))) +
           attribute("height", px(high_)) + attribute("data-from", chars_of(stretch.from)) +
           attribute("data-to", chars_of(stretch.to)) + "><title>" + escaped(stretch.name) +
           "</title></rect>\n";
  }

  std::string drawn(const Rule& rule) const {
    const std::string way = rule.upright ? "M" + px(x_of(rule.at)) + " 0v" + px(high_)
                                         : "M0 " + px(y_of(rule.at)) + "h" + px(broad_);
    return "<path class=\"" + line_class(rule.colour, true) + "\" d=\"" + way + "\"" +
           attribute("data-at", chars_of(rule.at)) + kUnscaled + "><title>" + escaped(rule.name) +
           "</title></path>\n";
  }

  std::string drawn(const HeatCell& cell) const {
    const double room = broad_ / static_cast<double>(figure_.across.names.size());
    const double x = x_of(cell.column) - room / 2;
    const double middle = middle_of(cell.lane);
    const double y = tops_[static_cast<std::size_t>(cell.lane)];
    std::string svg =
        "<rect class=\"cell h" + std::to_string(cell.shade) + "\"" + attribute("x", px(x)) +
        attribute("y", px(y)) + attribute("width", px(room)) +
        attribute("height", px(2 * (middle - y))) + attribute("data-value", chars_of(cell.value)) +
        "><title>" +
        escaped(figure_.up.names[static_cast<std::size_t>(cell.lane)] + ", " +
                figure_.across.names[static_cast<std::size_t>(cell.column)] + ": " + cell.text) +
        "</title></rect>\n";
    if (chart::width_of(cell.text) + 4 < room) {
      svg += written(x + room / 2, middle + 4, "middle", cell.text,
                     " class=\"on" + std::to_string(cell.shade) + "\"");
    }
    return svg;
  }

  std::string drawn(const Box& box) const {
    const double x = x_of(box.from);
    const double y = middle_of(box.lane) + kLane * (box.low ? 0.18 : -0.5) + (box.low ? 0 : 2);
    const double tall = box.low ? kLane * 0.25 : kLane - 4;
    std::string svg = "<rect class=\"box " + colour_class("c", box.colour) + "\"" +
                      attribute("x", px(x)) + attribute("y", px(y)) +
                      attribute("width", px(std::max(0.3, x_of(box.to) - x))) +
                      attribute("height", px(tall)) + attribute("data-from", chars_of(box.from)) +
                      attribute("data-to", chars_of(box.to));
    if (!box.name.empty()) {
      svg += attribute("data-name", escaped(box.name)) + "><title>" + escaped(box.name) +
             "</title></rect>";
    } else {
      svg += "/>";
    }
    return box.link.empty() ? svg + "\n"
                            : "<a href=\"#" + escaped(box.link) + "\">" + svg + "</a>\n";
  }

  // A stroke along each lane, with a stop at both ends.
  std::string drawn_ends() const {
    std::string svg;
    for (const auto& end : figure_.ends) {
      const double y = middle_of(static_cast<int>(end.x));
      const double low = x_of(end.low), high = x_of(end.high);
      svg += "<path class=\"end\" d=\"M" + px(low) + " " + px(y) + "H" + px(high);
      for (const double x : {low, high}) svg += "M" + px(x) + " " + px(y - 4) + "v8";
      svg += "\"" + attribute("data-low", chars_of(end.low)) +
             attribute("data-high", chars_of(end.high)) + kUnscaled + "/>\n";
    }
    return svg;
  }

  std::string dots(const std::vector<Point>& points) const {
    std::string way;
    for (const auto& point : points)
      way += "M" + px(x_of(point.x)) + " " + px(y_of(point.y)) + "h0";
    return way;
  }

  std::string way_of(const Series& series) const {
    std::string way;
    for (const auto& point : series.points) {
      const std::string x = px(x_of(point.x)), y = px(y_of(point.y));
      if (way.empty()) {
        way = "M" + x + " " + y;
      } else if (series.steps) {
        way += "H" + x + "V" + y;
      } else {
        way += "L" + x + " " + y;
      }
    }
    if (series.steps && !way.empty()) way += "H" + px(broad_);
    return way;
  }

  std::string band_of(const std::vector<Whisker>& band) const {
    std::string way;
    for (const auto& at : band) {
      way += (way.empty() ? "M" : "L") + px(x_of(at.x)) + " " + px(y_of(at.high));
    }
    for (auto at = band.rbegin(); at != band.rend(); ++at) {
      way += "L" + px(x_of(at->x)) + " " + px(y_of(at->low));
    }
    return way + "Z";
  }

  std::string drawn(const Series& series) const {
    const std::string colour = colour_class("l", series.colour);
    std::string data;
    for (const auto* points : {&series.points, &series.hollow}) {
      for (const auto& point : *points) {
        data += (data.empty() ? "" : " ") + chars_of(point.x) + "," + chars_of(point.y);
      }
    }
    std::string labels;
    for (const auto& label : series.labels) {
      labels += (labels.empty() ? "" : "\n") + escaped(label);
    }
    std::string svg = "<g class=\"series\"" + attribute("data-name", escaped(series.name)) +
                      attribute("data-points", data) +
                      (labels.empty() ? "" : attribute("data-labels", labels)) + "><title>" +
                      escaped(series.name) + "</title>";
    const auto path = [&](const std::string& css, const std::string& way) {
      if (!way.empty()) svg += "<path class=\"" + css + "\" d=\"" + way + "\"" + kUnscaled + "/>";
    };
    if (!series.band.empty()) {
      path("band " + colour_class("c", series.colour), band_of(series.band));
    }
    std::string whiskers;
    for (const auto& at : series.whiskers) {
      whiskers += "M" + px(x_of(at.x)) + " " + px(y_of(at.low)) + "V" + px(y_of(at.high));
    }
    path("whisker " + colour, whiskers);
    const std::string line = line_class(series.colour, series.dashed);
    if (series.line) path(line + (series.faint ? " faint" : ""), way_of(series));
    if (series.dots) path("dot " + colour, dots(series.points));
    path("dot " + colour, dots(series.hollow));
    path("core", dots(series.hollow));
    return svg + "</g>\n";
  }

  // Entries side by side, as many as fit into a line.
  std::string legend() {
    std::string text;
    double x = left_, y = end_ + 8;
    double below = kRow;  // of the row that is being filled
    const auto put = [&](const std::string& name, const std::string& glyph) {
      const auto lines = lines_of(name, kWide - left_ - 46);
      const double room = 30 + width_of(lines) + 16;
      if (x > left_ && x + room > kWide) {
        x = left_;
        y += below;
        below = kRow;
      }
      text += "<g transform=\"translate(" + px(x) + " " + px(y) + ")\">" + glyph +
              written(30, 4, "start", lines) + "</g>\n";
      x += room;
      below = std::max(below, height_of(lines) + kRow - kLine);
    };
    for (const auto& key : figure_.keys) {
      put(key.name,
          "<rect class=\"" +
              (key.shade ? "h" + std::to_string(key.colour) : colour_class("c", key.colour)) +
              " cell\" y=\"-6\" width=\"22\" height=\"12\"/>");
    }
    for (const auto& one : figure_.series) {
      if (!one.name.empty() && !one.faint) put(one.name, glyph_of(one));
    }
    for (const auto& rule : figure_.rules) {
      put(rule.name, "<path class=\"" + line_class(rule.colour, true) + "\" d=\"M0 0h22\"/>");
    }
    std::set<std::string> told;  // several stretches may be of one kind
    for (const auto& stretch : figure_.stretches) {
      if (!told.insert(stretch.name).second) continue;
      put(stretch.name, "<rect class=\"band " + colour_class("c", stretch.colour) +
                            "\" y=\"-6\" width=\"22\" height=\"12\"/>");
    }
    if (!text.empty()) end_ = y + below - 4;
    return text;
  }

  static std::string glyph_of(const Series& series) {
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

  static constexpr const char* kUnscaled = " vector-effect=\"non-scaling-stroke\"";

  const Figure& figure_;
  Values values_;
  Scale across_;
  Scale up_;
  std::vector<std::vector<std::string>> lanes_;  // their names
  std::vector<std::string> beside_;              // the title of the upward axis
  std::map<int, double> broken_;                 // ends of bars beyond the axis, by lane
  std::vector<double> tops_{0};                  // where each lane begins, and the last one ends
  double left_ = 0, top_ = 0, broad_ = 0, high_ = 0;
  double end_ = 0;  // below what was drawn so far
};

}  // namespace

std::string svg_file(const Figure& figure) { return Drawing(figure).text(true); }

std::string svg_inline(const Figure& figure) { return Drawing(figure).text(false); }

}  // namespace syncline::reports::chart
