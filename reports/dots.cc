#include "reports/dots.h"

#include <algorithm>
#include <utility>

#include "reports/format.h"

namespace syncline::reports {

void add_dot(chart::Series& dots, double measured, double predicted,
             const measure::Interval& interval, const std::string& name) {
  dots.points.push_back({measured, predicted});
  dots.labels.push_back(one_line(name));
  if (interval.high > 0) dots.whiskers.push_back({measured, interval.low, interval.high});
}

chart::Figure scatter(std::vector<chart::Series> dots, const std::string& across, chart::Unit unit,
                      const char* equal) {
  chart::Figure figure{"s-scatter",
                       "Measured and predicted step times",
                       "",
                       {across, unit, true},
                       {"predicted", unit, true}};
  chart::Series line{.name = equal, .colour = chart::kGrey, .dashed = true};
  bool strokes = false;
  for (auto& series : dots) {
    for (const auto& point : series.points) line.points.push_back({point.x, point.x});
    strokes = strokes || !series.whiskers.empty();
    if (!series.points.empty()) figure.series.push_back(std::move(series));
  }
  if (line.points.size() < 2) figure.series.clear();  // no chart of one point
  if (figure.series.empty()) return figure;
  std::ranges::sort(line.points, {}, &chart::Point::x);
  if (strokes) figure.note = "Strokes: 80 % intervals of the predictions.";
  figure.series.push_back(std::move(line));
  return figure;
}

}  // namespace syncline::reports
