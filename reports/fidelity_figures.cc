#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "reports/explain_report.h"
#include "reports/figures.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

using chart::Unit;

// Times of each kind of operation, predicted over measured: two bars a kind.
chart::Figure kinds_figure(const measure::ValidatedRow& row, std::size_t number) {
  chart::Figure figure;
  figure.id = "s-kinds-" + std::to_string(number);
  figure.title = "By kind of operation, a step of " + one_line(row.strategy);
  figure.across = {"time a step", Unit::kSeconds, false, true};
  figure.keys = {{"predicted", chart::kSky}, {"measured", chart::kBlue}};
  for (const auto& kind : row.kinds) {
    const auto bar = [&](const char* word, Seconds time, int colour) {
      figure.boxes.push_back({static_cast<int>(figure.up.names.size()), 0, time, colour,
                              kind.kind + ", " + word + ": " + seconds_text(time)});
      figure.up.names.push_back(kind.kind + ", " + word);
    };
    bar("predicted", kind.predicted, chart::kSky);
    bar("measured", kind.measured, chart::kBlue);
  }
  return figure;
}

chart::Series error_dots(const char* name, int colour) {
  chart::Series series{name, colour};
  series.line = false;
  series.dots = true;
  return series;
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
  chart::Figure figure;
  figure.id = "s-gains";
  figure.title = "What changes would gain";
  figure.across = {"shorter step", Unit::kPercent, false, true};
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
        {static_cast<int>(figure.up.names.size()), 0, advice->gain_percent, chart::kGreen,
         name + ", " + change + ": " + seconds_text(advice->step_time) + " a step"});
    figure.up.names.push_back(name + ": " + change);
  }
  return figure;
}

chart::Figure shares_figure(const measure::Explanation& explanation) {
  chart::Figure figure;
  figure.id = "s-shares";
  figure.title = "What each step is spent on";
  figure.across = {"time", Unit::kSeconds, false, true};
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
    const int lane = static_cast<int>(figure.up.names.size());
    if (one == best) figure.up.best.push_back(figure.up.names.size());
    figure.up.names.push_back(one_line(one->strategy.name));
    Seconds at = 0;
    for (std::size_t i = 0; i < figure.keys.size(); ++i) {
      if (parts[i] > 0) {
        figure.boxes.push_back({lane, at, at + parts[i], figure.keys[i].colour,
                                figure.keys[i].name + ", " + seconds_text(parts[i])});
      }
      at += parts[i];
    }
    if (one->interval.high > 0) {
      figure.ends.push_back({static_cast<double>(lane), one->interval.low, one->interval.high});
    }
  }
  std::erase_if(figure.keys, [&](const chart::Key& key) {
    return std::ranges::find(figure.boxes, key.colour, &chart::Box::colour) == figure.boxes.end();
  });
  finish_bars(figure);
  return figure;
}

}  // namespace

chart::Figure scatter(const std::vector<Compared>& rows) {
  chart::Figure figure;
  figure.id = "s-scatter";
  figure.title = "Measured and predicted step times";
  figure.across = {"measured", Unit::kSeconds, true};
  figure.up = {"predicted", Unit::kSeconds, true};
  chart::Series dots = error_dots("predicted before it was measured", chart::kBlue);
  chart::Series equal{"as measured", chart::kGrey};
  equal.dashed = true;
  for (const auto& row : rows) {
    dots.points.push_back({row.measured, row.predicted});
    dots.labels.push_back(one_line(row.name));
    if (row.interval.high > 0) {
      dots.whiskers.push_back({row.measured, row.interval.low, row.interval.high});
    }
    equal.points.push_back({row.measured, row.measured});
  }
  std::sort(equal.points.begin(), equal.points.end(),
            [](const chart::Point& a, const chart::Point& b) { return a.x < b.x; });
  if (!dots.whiskers.empty()) figure.note = "Strokes: 80 % intervals of the predictions.";
  figure.series = {std::move(dots), std::move(equal)};
  return figure;
}

std::vector<Illustration> figures_of(const measure::Validation& validation) {
  std::vector<Compared> rows;
  for (const auto& row : validation.rows) {
    rows.push_back({row.strategy, row.predicted, row.median, row.interval});
  }
  std::vector<Illustration> pictures;
  if (rows.size() > 1) pictures.push_back({scatter(rows)});
  const std::size_t shown = std::min(validation.rows.size(), kToldApart);
  for (std::size_t i = 0; i < shown; ++i) {
    if (!validation.rows[i].kinds.empty()) {
      pictures.push_back({kinds_figure(validation.rows[i], i)});
    }
  }
  return pictures;
}

std::vector<Illustration> figures_of(const std::vector<measure::LiveFile>& files) {
  std::vector<Compared> rows;
  for (const auto& file : files) {
    for (const auto& row : file.rows) {
      rows.push_back({file.scenario + ", " + row.strategy, row.predicted, row.median, {}});
    }
  }
  if (rows.size() < 2) return {};
  return {{scatter(rows)}};
}

std::vector<Illustration> figures_of(const std::vector<measure::FidelityTable>& tables) {
  chart::Figure figure;
  figure.id = "s-errors";
  figure.title = "Errors of the predicted rows, table by table";
  figure.across = {"error", Unit::kPercent, false, true};
  figure.keys = {{"to the median", chart::kBlue},
                 {"to the 90th percentile", chart::kSky},
                 {"to the worst", chart::kGrey}};
  for (const auto& table : tables) {
    const auto errors = measure::summary_of(table.predicted);
    if (!errors) continue;
    const int lane = static_cast<int>(figure.up.names.size());
    figure.up.names.push_back(one_line(table.name) +
                              (table.out_of_range.empty() ? "" : " (out of range)"));
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

}  // namespace syncline::reports
