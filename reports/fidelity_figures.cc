#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/bars.h"
#include "reports/chart/figure.h"
#include "reports/dots.h"
#include "reports/format.h"
#include "reports/validation_report.h"

namespace syncline::reports {
namespace {

using chart::Unit;

constexpr const char* kBefore = "predicted before it was measured";

// Draws the predicted and the measured time of each kind of operation: two bars per kind.
chart::Figure kinds_figure(const measure::ValidatedRow& row, std::size_t number) {
  chart::Figure figure{"s-kinds-" + std::to_string(number),
                       "By kind of operation, a step of " + one_line(row.strategy),
                       "",
                       {"time per step", Unit::kSeconds, false, true}};
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

std::vector<Illustration> measured_figure(chart::Series dots) {
  chart::Figure figure = scatter({std::move(dots)}, "measured", Unit::kSeconds, "as measured");
  if (figure.series.empty()) return {};
  return {{std::move(figure)}};
}

}  // namespace

std::vector<Illustration> figures_of(const measure::Validation& validation) {
  chart::Series dots = chart::point_series(kBefore, chart::kBlue);
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
  chart::Series dots = chart::point_series(kBefore, chart::kBlue);
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

}  // namespace syncline::reports
