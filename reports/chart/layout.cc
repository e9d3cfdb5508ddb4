#include "reports/chart/layout.h"

#include <algorithm>

#include "reports/chart/markup.h"
#include "reports/chart/svg_text.h"

namespace syncline::reports::chart {
namespace {

constexpr double kRight = 30;  // room on the right, for half a tick's label
constexpr double kPlotHigh = 320;
constexpr double kNames = 300;  // room for the names of lanes
constexpr double kBold = 1.12;  // width of bold letters / width of plain ones

// Values that the axes must show.
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

// Returns the ends of the bars that go on beyond the axis, by lane.
std::map<int, double> broken_lanes(const Figure& figure, const Scale& across) {
  std::map<int, double> broken;
  if (figure.across.cut <= 0) return broken;
  for (const auto& box : figure.boxes) {
    if (box.to > across.most() && !box.low) {
      broken[box.lane] = std::max(broken[box.lane], box.to);
    }
  }
  return broken;
}

}  // namespace

bool is_best(const Figure& figure, std::size_t lane) {
  return std::ranges::find(figure.up.best, lane) != figure.up.best.end();
}

PlotLayout::PlotLayout(const Figure& figure, double above)
    : across(figure.across, values_of(figure).across),
      up(figure.up, values_of(figure).up),
      columns(figure.across.names.size()),
      broken(broken_lanes(figure, across)),
      top(above) {
  const auto& names = figure.up.names;
  double label = 0;
  for (std::size_t lane = 0; lane < names.size(); ++lane) {
    const bool best = is_best(figure, lane);
    const double room = best ? kNames / kBold : kNames;
    lanes.push_back(lines_of((best ? kStar : "") + names[lane], room));
    label = std::max(label, width_of(lanes.back()) * (best ? kBold : 1));
    tops.push_back(tops.back() + height_of(lanes.back()) + kLane - kLine);
  }
  high = names.empty() ? kPlotHigh : tops.back();
  if (names.empty()) {
    for (const auto& tick : up.ticks(8)) label = std::max(label, width_of(tick.text));
  }
  beside = lines_of(up.title(), high + kTop);
  left = label + 14;
  if (!figure.up.title.empty()) left += height_of(beside) + kRow - kLine;
  double right = kRight;
  for (const auto& [lane, end] : broken) {
    right = std::max(right, width_of(value_text(figure.across.unit, end)) + 24);
  }
  broad = kWide - left - right;
}

double PlotLayout::x_of(double value) const {
  const auto names = static_cast<double>(columns);
  return broad * (names > 0 ? (value + 0.5) / names : across.share(value));
}

}  // namespace syncline::reports::chart
