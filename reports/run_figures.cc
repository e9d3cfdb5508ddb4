#include "reports/run_figures.h"
#include "reports/bars.h"
#include "reports/dots.h"
#include "reports/gantt.h"
#include "reports/run_rows.h"
#include "reports/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "reports/format.h"
#include "reports/run_report.h"

namespace syncline::reports {
namespace {

using chart::Unit;
using Rows = std::vector<const measure::Row*>;

// An axis is logarithmic if its largest value is this many times its smallest.
constexpr double kWideAxis = 8;
constexpr double kWideTimes = 20;

// The rows of the pictures: those of the first executor. Strategies are in the report's order.
struct Swept {
  std::vector<Axis> axes;
  std::vector<std::string> strategies;
  std::vector<SweepPoint> points;
  std::map<std::pair<std::string, std::size_t>, const measure::Row*> rows;  // strategy, point

  const measure::Row* at(const std::string& strategy, std::size_t point) const {
    const auto found = rows.find({strategy, point});
    return found == rows.end() ? nullptr : found->second;
  }

  // Returns the point's fastest row; nullptr if it has none.
  const measure::Row* fastest(std::size_t point) const {
    const measure::Row* best = nullptr;
    for (const auto& name : strategies) {
      const auto* row = at(name, point);
      if (row == nullptr) continue;
      if (best == nullptr || row->metrics.step_time < best->metrics.step_time) best = row;
    }
    return best;
  }
};

Swept swept(const measure::Report& report) {
  Swept result;
  result.axes = axes_of(report.rows);
  std::map<std::string, std::size_t> place;
  std::set<std::string> known;
  for (const auto& row : report.rows) {
    if (row.executor != report.rows.front().executor) continue;
    Json key = Json::array();
    for (const auto& [path, value] : row.sweep) key.push_back(Json::array({path, value}));
    const auto [at, added] = place.emplace(key.dump(-1, ' ', false, Json::error_handler_t::replace),
                                           result.points.size());
    if (added) result.points.push_back(row.sweep);
    if (known.insert(row.strategy).second) result.strategies.push_back(row.strategy);
    result.rows.emplace(std::pair(row.strategy, at->second), &row);
  }
  return result;
}

// Returns the strategies by their step time over the best of each point, in the geometric mean over
// all points: the most interesting ones first.
std::vector<std::string> best_first(const Swept& all) {
  std::map<std::string, double> rank;
  std::map<std::string, int> count;
  for (std::size_t point = 0; point < all.points.size(); ++point) {
    const auto* fastest = all.fastest(point);
    const double best = fastest == nullptr ? 0 : fastest->metrics.step_time;
    for (const auto& name : all.strategies) {
      const auto* row = all.at(name, point);
      if (!row || best <= 0) continue;
      rank[name] += std::log(row->metrics.step_time / best);
      ++count[name];
    }
  }
  std::vector<std::string> order = all.strategies;
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return rank[a] / std::max(1, count[a]) < rank[b] / std::max(1, count[b]);
  });
  return order;
}

// Returns the most interesting few, the baseline always among them, in the report's order.
std::vector<std::string> chosen(const measure::Report& report, const Swept& all, std::size_t most) {
  std::vector<std::string> order = best_first(all);
  const auto baseline = std::find(order.begin(), order.end(), report.baseline);
  if (baseline != order.end()) std::rotate(order.begin(), baseline, baseline + 1);
  if (order.size() > most) order.resize(most);
  const std::set<std::string> kept(order.begin(), order.end());
  std::vector<std::string> result;
  for (const auto& name : all.strategies) {
    if (kept.contains(name)) result.push_back(name);
  }
  return result;
}

std::string left_out_note(std::size_t drawn, std::size_t all) {
  if (drawn >= all) return "";
  return " Drawn are " + std::to_string(drawn) + " of " + std::to_string(all) +
         " strategies, the fastest and the baseline; the others are in the data.";
}

std::string words(const SweepPoint& point, const std::vector<Axis>& axes) {
  measure::Row row;
  row.sweep = point;
  return point_text(row, axes);
}

// Parts of the step ------------------------------------------------------------------------------

chart::Figure bars(const measure::Report& report, const Swept& all) {
  std::vector<StepParts> parts;
  const auto tones = tones_of(report);
  for (const auto& name : chosen(report, all, kBarStrategies)) {
    const auto* row = all.at(name, 0);
    if (row == nullptr) continue;
    const auto place = static_cast<std::size_t>(row - report.rows.data());
    parts.push_back({row->strategy, row->metrics, row->step, tones[place] == Tone::kBest});
  }
  chart::Figure figure = step_bars(parts);
  if (all.points.size() > 1) {
    figure.note += " At the first of " + plural(all.points.size(), "sweep point") + ": " +
                   words(all.points.front(), all.axes) + ".";
  }
  figure.note += left_out_note(parts.size(), all.strategies.size());
  return figure;
}

// Over the sweep --------------------------------------------------------------------------------

std::optional<double> number_on(const SweepPoint& point, const Axis& axis) {
  for (const auto& [path, value] : point) {
    if (path == axis.path && value.is_number()) return value.get<double>();
  }
  return std::nullopt;
}

// Returns the points along one axis, all else as at the first point, by ascending value.
std::vector<std::pair<double, std::size_t>> along(const Swept& all, const Axis& axis) {
  std::vector<std::pair<double, std::size_t>> line;
  const auto others = [&](SweepPoint point) {
    std::erase_if(point, [&](const auto& entry) { return entry.first == axis.path; });
    return point;
  };
  const SweepPoint first = others(all.points.front());
  for (std::size_t i = 0; i < all.points.size(); ++i) {
    const auto value = number_on(all.points[i], axis);
    if (value && others(all.points[i]) == first) line.emplace_back(*value, i);
  }
  std::sort(line.begin(), line.end());
  return line;
}

using Along = std::vector<std::pair<double, std::size_t>>;

// Adds a line per strategy; those beyond the number of colours are faint.
template <typename Of>
void add_lines(chart::Figure& figure, const measure::Report& report, const Swept& all,
               const Along& line, Of value_of) {
  const auto coloured = chosen(report, all, kToldApart);
  const auto shown = chosen(report, all, kLines);
  const bool bands = coloured.size() <= 3;
  std::vector<chart::Series> faint;
  int colour = 0;
  for (const auto& name : shown) {
    const bool clear = std::find(coloured.begin(), coloured.end(), name) != coloured.end();
    chart::Series series;
    series.name = one_line(name);
    series.colour = clear ? colour++ : chart::kGrey;
    series.faint = !clear;
    series.dots = clear && line.size() <= 60;
    for (const auto& [value, point] : line) {
      const auto* row = all.at(name, point);
      if (row == nullptr) continue;
      series.points.push_back({value, value_of(*row, value)});
      if (clear && bands && row->step.high > 0 && figure.up.unit == Unit::kSeconds) {
        series.band.push_back({value, row->step.low, row->step.high});
      }
    }
    (clear ? figure.series : faint).push_back(std::move(series));
  }
  if (!faint.empty()) {
    figure.note +=
        " Named are " + std::to_string(coloured.size()) + " of " +
        std::to_string(all.strategies.size()) + " strategies, the fastest and the baseline; " +
        (shown.size() < all.strategies.size() ? std::to_string(faint.size()) +
                                                    " others are thin and grey, the rest is "
                                                    "in the data alone."
                                              : std::string("the others are thin and grey."));
  }
  std::move(faint.begin(), faint.end(), std::back_inserter(figure.series));
}

bool wide(const std::vector<double>& values, double times) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return !values.empty() && *least > 0 && *most / *least >= times;
}

chart::ChartAxis across_of(const Axis& axis, const Along& line) {
  std::vector<double> values;
  for (const auto& [value, point] : line) values.push_back(value);
  return {axis.name, Unit::kNumber, wide(values, kWideAxis)};
}

// Adds a ring around the fastest of each point, with its interval if lines have no bands.
void add_fastest(chart::Figure& figure, const Swept& all, const Along& line) {
  if (all.strategies.size() < 2) return;
  const bool banded = !figure.series.empty() && !figure.series.front().band.empty();
  chart::Series rings{"the fastest", chart::kGrey};
  rings.line = false;
  for (const auto& [value, point] : line) {
    const auto* best = all.fastest(point);
    if (best == nullptr) continue;
    rings.hollow.push_back({value, best->metrics.step_time});
    if (banded || best->step.high <= 0) continue;
    rings.whiskers.push_back({value, best->step.low, best->step.high});
  }
  if (!rings.whiskers.empty()) figure.note += " Strokes: the 80 % intervals of the fastest.";
  figure.series.insert(figure.series.begin(), std::move(rings));
}

chart::Figure step_curve(const measure::Report& report, const Swept& all, const Axis& axis,
                         const Along& line, std::size_t number) {
  chart::Figure figure{"s-curve-" + std::to_string(number), "Step time over " + axis.name, "",
                       across_of(axis, line)};
  std::vector<double> times;
  for (const auto& [value, point] : line) {
    for (const auto& name : all.strategies) {
      const auto* row = all.at(name, point);
      if (row != nullptr) times.push_back(row->metrics.step_time);
    }
  }
  figure.up = {"step time", Unit::kSeconds, outlying(times) || wide(times, kWideTimes)};
  if (all.axes.size() > 1) {
    figure.note =
        "All else as at the first sweep point: " + words(all.points.front(), all.axes) + ".";
  }
  add_lines(figure, report, all, line,
            [](const measure::Row& row, double) { return row.metrics.step_time; });
  if (!figure.series.empty() && !figure.series.front().band.empty()) {
    figure.note += " Shaded: the 80 % interval.";
  }
  add_fastest(figure, all, line);
  return figure;
}

// Draws throughput per node as a share of that with the fewest nodes.
chart::Figure efficiency(const measure::Report& report, const Swept& all, const Axis& axis,
                         const Along& line) {
  chart::Figure figure{"s-efficiency",
                       "Efficiency over " + axis.name,
                       "",
                       across_of(axis, line),
                       {"throughput per node; fewest nodes: 100", Unit::kPercent, false, true}};
  const double least = line.front().first;
  const auto first = line.front().second;
  add_lines(figure, report, all, line, [&](const measure::Row& row, double nodes) {
    const auto* alone = all.at(row.strategy, first);
    if (alone == nullptr) return 0.0;
    // Without a number of samples per step, each node is taken to have the same number.
    if (std::isnan(row.metrics.throughput)) {
      return 100 * alone->metrics.step_time / row.metrics.step_time;
    }
    return 100 * row.metrics.throughput / nodes / (alone->metrics.throughput / least);
  });
  return figure;
}

// The heat map ----------------------------------------------------------------------------------

constexpr double kShadeEnds[] = {1.005, 1.02, 1.05, 1.1, 1.25, 1.5};
constexpr const char* kShadeWords[] = {
    "best, within 0.5 %", "to 2 % above", "to 5 %", "to 10 %", "to 25 %", "to 50 %",
    "more than 50 %"};

int shade_of(double ratio) {
  int shade = 0;
  for (const double end : kShadeEnds) shade += ratio > end ? 1 : 0;
  return shade;
}

std::string ratio_text(double ratio) {
  const auto hundredths = std::lround(100 * ratio);
  const std::string cents = std::to_string(hundredths % 100);
  return hundredths >= 10000
             ? std::to_string(hundredths / 100)
             : std::to_string(hundredths / 100) + "." + (cents.size() < 2 ? "0" : "") + cents;
}

chart::Figure heat_map(const measure::Report& report, const Swept& all) {
  chart::Figure figure;
  figure.id = "s-heat";
  figure.title = "Step time over the best of each sweep point";
  auto names = chosen(report, all, kHeatStrategies);
  const auto order = best_first(all);
  std::ranges::sort(names, {}, [&](const auto& name) { return std::ranges::find(order, name); });
  const std::size_t points = std::min(all.points.size(), kHeatPoints);
  for (const auto& name : names) figure.up.names.push_back(one_line(name));
  for (std::size_t i = 0; i < points; ++i) {
    const std::string text = words(all.points[i], all.axes);
    // Names of points omit the only axis.
    figure.across.names.push_back(
        all.axes.size() == 1 ? text.substr(std::min(text.size(), all.axes[0].name.size() + 1))
                             : text);
  }
  figure.across.title = all.axes.size() == 1 ? all.axes[0].name : "sweep point";
  for (std::size_t point = 0; point < points; ++point) {
    const auto* fastest = all.fastest(point);
    const double best = fastest == nullptr ? 0 : fastest->metrics.step_time;
    for (std::size_t lane = 0; lane < names.size(); ++lane) {
      const auto* row = all.at(names[lane], point);
      if (row == nullptr || best <= 0) continue;
      const double ratio = row->metrics.step_time / best;
      figure.cells.push_back({static_cast<int>(point), static_cast<int>(lane), shade_of(ratio),
                              ratio_text(ratio), row->metrics.step_time});
    }
  }
  for (int shade = 0; shade < chart::kShades; ++shade) {
    figure.keys.push_back({kShadeWords[shade], shade, true});
  }
  figure.note = "1.00 is the fastest of its column; strategies in order of their times." +
                left_out_note(names.size(), all.strategies.size());
  if (points < all.points.size()) {
    figure.note += " The first " + std::to_string(points) + " of " +
                   plural(all.points.size(), "sweep point") + ".";
  }
  return figure;
}

// Compared with published figures ---------------------------------------------------------------

// A published figure and its prediction, with the ends of its interval.
struct Forecast {
  std::size_t of = 0;  // index in kPublished
  double published = 0;
  double predicted = 0;
  measure::Interval interval = {};
};

constexpr std::pair<const char*, Unit> kPublished[] = {
    {"step time", Unit::kSeconds},
    {"throughput of samples per second", Unit::kNumber},
    {"speedup over the baseline", Unit::kNumber}};

// Returns the forecast of the first published figure, which the errors are about too.
std::optional<Forecast> forecast_of(const measure::Row& row) {
  const Published& published = *row.published;
  if (published.step_time) {
    return Forecast{0, *published.step_time, row.metrics.step_time, row.step};
  }
  if (published.throughput) {
    const double samples = row.metrics.throughput * row.metrics.step_time;
    Forecast forecast{1, *published.throughput, row.metrics.throughput};
    if (row.step.low > 0) forecast.interval = {samples / row.step.high, samples / row.step.low};
    return forecast;
  }
  if (!published.speedup) return std::nullopt;
  return Forecast{2, *published.speedup, row.speedup, row.gain};
}

chart::Figure published_figure(const measure::Report& report, std::size_t of) {
  std::vector<chart::Series> dots{chart::point_series("predicted", chart::kBlue),
                                  chart::point_series("calibrated", chart::kOrange)};
  const auto axes = axes_of(report.rows);
  for (const auto& row : report.rows) {
    if (!row.published) continue;
    const auto forecast = forecast_of(row);
    if (!forecast || forecast->of != of) continue;
    const std::string point = point_text(row, axes);
    add_dot(dots[row.published->calibrated ? 1 : 0], forecast->published, forecast->predicted,
            forecast->interval, row.strategy + (point.empty() ? "" : ", " + point));
  }
  const std::string what = kPublished[of].first;
  chart::Figure figure =
      scatter(std::move(dots), "published " + what, kPublished[of].second, "as published");
  figure.id = "s-published-" + what.substr(0, what.find(' '));
  figure.title = "Published and predicted: " + what;
  figure.note = "Strokes: 80 % intervals of the predictions.";
  return figure;
}

// The step --------------------------------------------------------------------------------------

// Returns the baseline and the fastest other traced strategy, or without a baseline the fastest
// two.
std::vector<std::size_t> two_to_show(const measure::Report& report, const Swept& all) {
  std::vector<std::tuple<bool, Seconds, std::size_t>> order;  // those that fit come first
  std::optional<std::size_t> baseline;
  for (std::size_t i = 0; i < report.traced.size(); ++i) {
    const auto* row = all.points.empty() ? nullptr : all.at(report.traced[i].strategy, 0);
    order.emplace_back(row && !row->memory.fits(), row ? row->metrics.step_time : 0, i);
    if (report.traced[i].strategy == report.baseline) baseline = i;
  }
  std::stable_sort(order.begin(), order.end());
  std::vector<std::size_t> which;
  if (baseline) which.push_back(*baseline);
  for (const auto& [large, time, place] : order) {
    if (which.size() == 2) break;
    if (which.empty() || place != which.front()) which.push_back(place);
  }
  return which;
}

}  // namespace

std::vector<Illustration> figures_of(const measure::Report& report) {
  std::vector<Illustration> pictures;
  if (report.rows.empty()) return pictures;
  const Swept all = swept(report);
  pictures.push_back({bars(report, all)});
  const auto which = two_to_show(report, all);
  if (!which.empty()) pictures.push_back(gantt(report, which));
  std::size_t number = 0;
  for (const auto& axis : all.axes) {
    const Along line = along(all, axis);
    if (line.size() < 2) continue;
    pictures.push_back({step_curve(report, all, axis, line, number++)});
    if (axis.path == "cluster.nodes") {
      pictures.push_back({efficiency(report, all, axis, line)});
    }
  }
  if (all.points.size() > 1 && all.strategies.size() > 1) {
    pictures.push_back({heat_map(report, all)});
  }
  for (std::size_t of = 0; of < std::size(kPublished); ++of) {
    auto figure = published_figure(report, of);
    if (!figure.series.empty()) pictures.push_back({std::move(figure)});
  }
  return pictures;
}

}  // namespace syncline::reports
