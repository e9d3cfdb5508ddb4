#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/measure/uncertainty.h"
#include "reports/calibration.h"
#include "reports/chart/figure.h"
#include "reports/figures.h"
#include "reports/format.h"
#include "reports/run_report.h"

namespace syncline::reports {
namespace {

using chart::Unit;

constexpr const char* kBefore = "predicted before it was measured";

// Times of each kind of operation, predicted over measured: two bars a kind.
chart::Figure kinds_figure(const measure::ValidatedRow& row, std::size_t number) {
  chart::Figure figure{"s-kinds-" + std::to_string(number),
                       "By kind of operation, a step of " + one_line(row.strategy),
                       "",
                       {"time a step", Unit::kSeconds, false, true}};
  figure.keys = {{"predicted", chart::kSky}, {"measured", chart::kBlue}};
  for (const auto& kind : row.kinds) {
    const auto bar = [&](const char* word, Seconds time, int colour) {
      const std::string name = kind.kind + ", " + word;
      figure.boxes.push_back(
          {add_lane(figure, name), 0, time, colour, name + ": " + seconds_text(time)});
    };
    bar("predicted", kind.predicted, chart::kSky);
    bar("measured", kind.measured, chart::kBlue);
  }
  return figure;
}

// The fabric's links by kind and direction, at each switch, coloured by what a step does to them.
chart::Figure fabric_figure(const measure::Explained& one, std::size_t which) {
  chart::Figure figure;
  figure.id = "s-links-" + std::to_string(which);
  figure.title = "Links of the fabric, " + one_line(one.strategy.name);
  figure.note =
      "How long a step's collectives keep the busiest link of its kind busy. Links that the job "
      "cannot fill are left out.";
  figure.across.title = "switch";
  std::map<std::string, int> lanes;
  Seconds most = 0;
  for (const auto& load : one.links) {
    lanes.try_emplace(load.sort, 0);
    most = std::max({most, load.out, load.in});
  }
  for (auto& [sort, lane] : lanes) {
    lane = static_cast<int>(figure.up.names.size());
    figure.up.names.push_back(one_line(sort) + ", out");
    figure.up.names.push_back(one_line(sort) + ", in");
  }
  const auto shade_of = [&](Seconds busy) {
    return static_cast<int>(std::lround((chart::kShades - 1) * busy / most));
  };
  auto& names = figure.across.names;
  for (const auto& load : one.links) {
    if (names.empty() || names.back() != one_line(load.name)) names.push_back(one_line(load.name));
    const int column = static_cast<int>(names.size()) - 1;
    for (const auto& [lane, busy] : {std::pair{0, load.out}, std::pair{1, load.in}}) {
      figure.cells.push_back({column, lanes.at(load.sort) + lane, shade_of(busy), "", busy});
    }
  }
  for (int shade = 0; shade < chart::kShades; ++shade) {
    figure.keys.push_back({seconds_text(most * shade / (chart::kShades - 1)), shade, true});
  }
  return figure;
}

// Each piece of advice, the one that gains most on top.
chart::Figure gains_figure(const measure::Explanation& explanation) {
  chart::Figure figure{
      "s-gains", "What changes would gain", "", {"shorter step", Unit::kPercent, false, true}};
  std::vector<std::pair<const measure::Explained*, const measure::Advice*>> all;
  for (const auto& one : explanation.strategies) {
    for (const auto& advice : one.advice) all.emplace_back(&one, &advice);
  }
  if (all.size() < 2) return figure;  // no chart of one bar: the words have it
  std::ranges::stable_sort(all, std::greater{},
                           [](const auto& of) { return of.second->gain_percent; });
  for (const auto& [one, advice] : all) {
    const std::string name = one_line(one->strategy.name), change = one_line(advice->change);
    figure.boxes.push_back(
        {add_lane(figure, name + ": " + change), 0, advice->gain_percent, chart::kGreen,
         name + ", " + change + ": " + seconds_text(advice->step_time) + " a step"});
  }
  return figure;
}

chart::Figure shares_figure(const measure::Explanation& explanation) {
  chart::Figure figure{
      "s-shares", "What each step is spent on", "", {"time", Unit::kSeconds, false, true}};
  figure.keys = {{"computation", chart::kBlue},        {"waiting for slower ranks", chart::kGrey},
                 {"the host's overhead", chart::kSky}, {"copying, encoding", chart::kOrange},
                 {"latency", chart::kPurple},          {"bandwidth", chart::kVermilion},
                 {"other parallelism", chart::kGreen}};
  std::vector<const measure::Explained*> all;
  for (const auto& one : explanation.strategies) {
    if (one.bottleneck) all.push_back(&one);
  }
  std::ranges::stable_sort(all, {}, [](const auto* one) { return one->bottleneck->step; });
  const auto* best = all.size() > 1 ? fastest_of(explanation) : nullptr;
  for (const auto* one : all) {
    const measure::Bottleneck& bound = *one->bottleneck;
    Seconds cuts = 0;
    for (const auto& [word, seconds] : bound.cuts()) cuts += seconds;
    const Seconds parts[] = {bound.compute,
                             bound.stragglers,
                             bound.overhead,
                             bound.handling,
                             bound.start_up,
                             bound.transfer,
                             cuts};
    const int lane = add_lane(figure, one_line(one->strategy.name), one->interval, one == best);
    Seconds at = 0;
    for (std::size_t i = 0; i < figure.keys.size(); ++i) {
      if (parts[i] > 0) {
        figure.boxes.push_back({lane, at, at + parts[i], figure.keys[i].colour,
                                figure.keys[i].name + ", " + seconds_text(parts[i])});
      }
      at += parts[i];
    }
  }
  drop_unused_keys(figure);
  finish_bars(figure);
  return figure;
}

std::vector<Illustration> measured_figure(chart::Series dots) {
  chart::Figure figure = scatter({std::move(dots)}, "measured", Unit::kSeconds, "as measured");
  if (figure.series.empty()) return {};
  return {{std::move(figure)}};
}

}  // namespace

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

std::vector<Illustration> figures_of(const measure::Validation& validation) {
  chart::Series dots = chart::dotted(kBefore, chart::kBlue);
  for (const auto& row : validation.rows) {
    add_dot(dots, row.median, row.predicted, row.interval, row.strategy);
  }
  std::vector<Illustration> pictures = measured_figure(std::move(dots));
  const std::size_t shown = std::min(validation.rows.size(), kToldApart);
  for (std::size_t i = 0; i < shown; ++i) {
    if (!validation.rows[i].kinds.empty()) {
      pictures.push_back({kinds_figure(validation.rows[i], i)});
    }
  }
  return pictures;
}

std::vector<Illustration> figures_of(const std::vector<measure::LiveFile>& files) {
  chart::Series dots = chart::dotted(kBefore, chart::kBlue);
  for (const auto& file : files) {
    for (const auto& row : file.rows) {
      add_dot(dots, row.median, row.predicted, {}, file.scenario + ", " + row.strategy);
    }
  }
  return measured_figure(std::move(dots));
}

std::vector<Illustration> figures_of(const std::vector<measure::FidelityTable>& tables) {
  chart::Figure figure{"s-errors",
                       "Errors of the predicted rows, table by table",
                       "",
                       {"error", Unit::kPercent, false, true}};
  figure.keys = {{"to the median", chart::kBlue},
                 {"to the 90th percentile", chart::kSky},
                 {"to the worst", chart::kGrey}};
  for (const auto& table : tables) {
    const auto errors = measure::summary_of(table.predicted);
    if (!errors) continue;
    const int lane = add_lane(
        figure, one_line(table.name) + (table.out_of_range.empty() ? "" : " (out of range)"));
    const auto part = [&](double from, double to, int colour, const char* what) {
      figure.boxes.push_back({lane, from, to, colour,
                              one_line(table.name) + ": " + what + " error " + share_text(to)});
    };
    part(0, errors->median, chart::kBlue, "median");
    part(errors->median, errors->p90, chart::kSky, "90th percentile of the");
    part(errors->p90, errors->worst, chart::kGrey, "worst");
  }
  if (figure.boxes.empty()) return {};
  finish_bars(figure);
  return {{std::move(figure)}};
}

std::vector<Illustration> figures_of(const measure::Explanation& explanation) {
  auto shares = shares_figure(explanation), gains = gains_figure(explanation);
  std::vector<Illustration> pictures;
  if (!shares.boxes.empty()) pictures.push_back({std::move(shares)});
  if (!gains.boxes.empty()) pictures.push_back({std::move(gains)});
  for (const auto& one : explanation.strategies) {
    if (one.links.empty() || pictures.size() > kToldApart) continue;
    pictures.push_back({fabric_figure(one, pictures.size())});
  }
  return pictures;
}

namespace {

using chart::Unit;
using LogTable = calibrate::ComparedTable;
using Row = calibrate::ComparedRow;

// Tables with their bands; of more only the lines, or nothing else would be seen.
constexpr std::size_t kBands = 3;

// A row is hollow where the cost model was not fitted to it: out of its range, or an outlier.
bool set_apart(const LogTable& table, const Row& row) {
  return !row.in_range ||
         std::find(table.outliers.begin(), table.outliers.end(), row.bytes) != table.outliers.end();
}

std::string name_of(const LogTable& table) {
  const std::string file = table.file.substr(table.file.rfind('/') + 1);
  return table_test(table) + ", " + std::to_string(table.nodes) + " x " +
         std::to_string(table.gpus_per_node) + ", " + one_line(file);
}

template <typename Use>
void each_table(const calibrate::LogCalibration& calibration, Use use) {
  for (const auto& table : calibration.fitted) use(table, true);
  for (const auto& table : calibration.against) use(table, false);
}

// Measured dots and the cost model's line of every table; `of` says what is drawn of a row's time.
template <typename Of>
chart::Figure over_size(const calibrate::LogCalibration& calibration, Of of) {
  chart::Figure figure;
  figure.across = {"payload", Unit::kBytes, true};
  const std::size_t tables = calibration.fitted.size() + calibration.against.size();
  int colour = 0;
  bool apart = false;
  each_table(calibration, [&](const LogTable& table, bool fitted) {
    chart::Series dots = chart::dotted("", colour);
    chart::Series line{name_of(table) + (fitted ? "" : ", predicted"), colour++};
    line.dashed = !fitted;
    for (const auto& row : table.rows) {
      const auto bytes = static_cast<double>(row.bytes);
      const double factor = std::exp(measure::kHeldDeviations * row.spread);
      const bool hollow = set_apart(table, row);
      apart = apart || hollow;
      (hollow ? dots.hollow : dots.points).push_back({bytes, of(table, row, row.measured)});
      line.points.push_back({bytes, of(table, row, row.predicted)});
      if (tables <= kBands) {
        const double one = of(table, row, row.predicted / factor);
        const double other = of(table, row, row.predicted * factor);
        line.band.push_back({bytes, std::min(one, other), std::max(one, other)});
      }
    }
    figure.series.push_back(std::move(dots));
    figure.series.push_back(std::move(line));
  });
  figure.note = "Dots: measured; lines: fitted" +
                std::string(calibration.against.empty() ? "" : ", dashed: predicted") +
                (tables <= kBands ? "; shaded: the 80 % interval" : "") +
                (apart ? "; hollow: out of range or left out of the fit" : "") + ".";
  return figure;
}

chart::Figure times(const calibrate::LogCalibration& calibration) {
  chart::Figure figure =
      over_size(calibration, [](const LogTable&, const Row&, Seconds time) { return time; });
  figure.id = "s-time";
  figure.title = "Time of a collective over its payload";
  figure.up = {"time", Unit::kSeconds, true};
  return figure;
}

chart::Figure bandwidths(const calibrate::LogCalibration& calibration) {
  chart::Figure figure =
      over_size(calibration, [](const LogTable& table, const Row& row, Seconds time) {
        return static_cast<double>(row.bytes) * bus_share(table) / time;
      });
  figure.id = "s-bandwidth";
  figure.title = "Bus bandwidth over payload, as nccl-tests counts it";
  figure.up = {"bus bandwidth", Unit::kBytesPerSecond, false, true};
  return figure;
}

chart::Figure residuals(const calibrate::LogCalibration& calibration) {
  chart::Figure figure{"s-residuals",
                       "Error over payload",
                       "",
                       {"payload", Unit::kBytes, true},
                       {"predicted above measured", Unit::kPercent, false, true}};
  int colour = 0;
  each_table(calibration, [&](const LogTable& table, bool fitted) {
    chart::Series dots = chart::dotted(name_of(table) + (fitted ? "" : ", predicted"), colour++);
    for (const auto& row : table.rows) {
      (set_apart(table, row) ? dots.hollow : dots.points)
          .push_back({static_cast<double>(row.bytes), (row.predicted / row.measured - 1) * 100});
    }
    figure.series.push_back(std::move(dots));
  });
  figure.rules.push_back({"as measured", false, 0, chart::kGrey});
  return figure;
}

}  // namespace

std::vector<Illustration> figures_of(const calibrate::LogCalibration& calibration) {
  std::size_t rows = 0;
  each_table(calibration, [&](const LogTable& table, bool) { rows += table.rows.size(); });
  if (calibration.fitted.empty() || rows < 2) return {};  // no chart of one point
  return {{times(calibration)}, {bandwidths(calibration)}, {residuals(calibration)}};
}

std::string calibration_svg(const calibrate::LogCalibration& calibration) {
  return chart::svg_file(times(calibration));
}

}  // namespace syncline::reports
