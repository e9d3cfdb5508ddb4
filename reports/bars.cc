#include "reports/bars.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reports/format.h"

namespace syncline::reports {

bool outlying(std::vector<double> values) {
  constexpr double kOutlier = 5;
  if (values.empty()) return false;
  std::ranges::sort(values);
  return values.back() > kOutlier * values[values.size() / 2];
}

bool outlying(const std::vector<chart::Series>& series) {
  std::vector<double> values;
  for (const auto& one : series) {
    for (const auto& point : one.points) values.push_back(point.y);
  }
  return outlying(std::move(values));
}

int add_lane(chart::Figure& figure, const std::string& name, const measure::Interval& interval,
             bool best) {
  const std::size_t lane = figure.up.names.size();
  figure.up.names.push_back(name);
  if (best) figure.up.best.push_back(lane);
  if (interval.high > 0) {
    figure.ends.push_back({static_cast<double>(lane), interval.low, interval.high});
  }
  return static_cast<int>(lane);
}

void drop_unused_keys(chart::Figure& figure) {
  std::erase_if(figure.keys, [&](const chart::Key& key) {
    return std::ranges::find(figure.boxes, key.colour, &chart::Box::colour) == figure.boxes.end();
  });
}

void finish_bars(chart::Figure& figure) {
  const auto note = [&](const char* text) {
    figure.note += std::string(figure.note.empty() ? "" : " ") + text;
  };
  if (!figure.ends.empty()) note("Strokes: the 80 % intervals of the step times.");
  if (!figure.up.best.empty()) note("The star: the best.");
  std::vector<double> lanes(figure.up.names.size());
  for (const auto& box : figure.boxes) {
    double& end = lanes[static_cast<std::size_t>(box.lane)];
    end = std::max(end, box.to);
  }
  auto shown = lanes;
  std::ranges::sort(shown);
  while (outlying(shown)) shown.pop_back();
  if (shown.size() == lanes.size()) return;
  figure.across.cut = shown.back();
  for (const auto& end : figure.ends) {
    const bool whole = lanes[static_cast<std::size_t>(end.x)] <= shown.back();
    if (whole) figure.across.cut = std::max(figure.across.cut, end.high);
  }
  note("Bars beyond the axis are broken, with their end written.");
}

chart::Figure step_bars(std::vector<StepParts> strategies) {
  std::ranges::stable_sort(strategies, {},
                           [](const StepParts& one) { return one.metrics.step_time; });
  chart::Figure figure{
      "s-bars", "Where the step goes", "", {"time", chart::Unit::kSeconds, false, true}};
  figure.keys = {{"computation", chart::kBlue},
                 {"copying, encoding, the host", chart::kOrange},
                 {"exposed communication and waiting", chart::kVermilion},
                 {"hidden communication", chart::kGreen}};
  for (const auto& [name, metrics, interval, best] : strategies) {
    const std::string label = one_line(name);
    const int lane = add_lane(figure, label, interval, best);
    const Seconds step = metrics.step_time;
    const Seconds compute = std::min(metrics.compute, step);
    const Seconds handled = std::min(step, compute + metrics.comm_overhead);
    const auto part = [&](Seconds from, Seconds to, int colour, const char* what, bool low) {
      if (to - from <= step * 1e-9) return;
      figure.boxes.push_back(
          {lane, from, to, colour, label + ": " + what + ", " + seconds_text(to - from), "", low});
    };
    part(0, compute, chart::kBlue, "computation", false);
    part(compute, handled, chart::kOrange, "copying, encoding, the host", false);
    part(handled, step, chart::kVermilion, "exposed communication and waiting", false);
    // Below the computation that hides it.
    const Seconds hidden = std::clamp(metrics.communication - (step - handled), 0.0, compute);
    part(compute - hidden, compute, chart::kGreen, "hidden communication", true);
  }
  figure.note = "One training step in steady state on rank 0.";
  finish_bars(figure);
  return figure;
}

}  // namespace syncline::reports
