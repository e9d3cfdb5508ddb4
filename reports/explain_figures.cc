#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "reports/bars.h"
#include "reports/chart/figure.h"
#include "reports/explain_report.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

using chart::Unit;

// Returns the fabric's links by kind and direction, at each switch, shaded by the time that a step
// keeps them busy.
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

// Draws each piece of advice as a bar, the largest gain on top.
chart::Figure gains_figure(const measure::Explanation& explanation) {
  chart::Figure figure{
      "s-gains", "What changes would gain", "", {"shorter step", Unit::kPercent, false, true}};
  std::vector<std::pair<const measure::Explained*, const measure::Advice*>> all;
  for (const auto& one : explanation.strategies) {
    for (const auto& advice : one.advice) all.emplace_back(&one, &advice);
  }
  if (all.size() < 2) return figure;  // no chart of one bar: the text says it
  std::ranges::stable_sort(all, std::greater{},
                           [](const auto& of) { return of.second->gain_percent(); });
  for (const auto& [one, advice] : all) {
    const std::string name = one_line(one->strategy.name), change = one_line(advice->change);
    figure.boxes.push_back(
        {add_lane(figure, name + ": " + change), 0, advice->gain_percent(), chart::kGreen,
         name + ", " + change + ": " + seconds_text(advice->metrics.step_time) + " per step"});
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
                             bound.comm_overhead,
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

}  // namespace

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
