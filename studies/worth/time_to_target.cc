#include "studies/worth/time_to_target.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "formats/input/document.h"
#include "studies/study/study_calibration.h"
#include "studies/tune/search_space.h"
#include "studies/warnings/warnings.h"

namespace syncline::worth {
namespace {

// Returns the scenario with a step's cost averaged over the training's first `steps`.
Scenario over_steps(Scenario scenario, double steps) {
  auto& rate = scenario.training.learning_rate;
  if (!rate.steps && scenario.training.steps) {  // it still falls over the whole training
    rate.steps = scenario.training.from + *scenario.training.steps;
  }
  scenario.training.step.reset();
  scenario.training.from = 0;
  scenario.training.steps = std::max<std::int64_t>(1, std::llround(steps));
  return scenario;
}

// Returns the strategy with the settings that make its step shortest and keep its training.
Strategy searched_strategy(const Scenario& scenario, const Strategy& strategy,
                           const tune::TuneOptions& options) {
  Scenario alone = scenario;
  alone.strategies = {strategy};
  alone.baseline = strategy.name;
  alone.published.clear();
  const auto tuned = tune::tune(alone, tune::default_search(alone), options);
  return tuned.winner().strategy;
}

// Returns the mean over the seeds, at the steps that all of them have.
std::vector<Look> mean_curve(const std::vector<Curve>& curves, const std::string& strategy) {
  std::map<double, std::vector<double>> values;
  std::size_t seeds = 0;
  for (const Curve& curve : curves) {
    if (curve.strategy != strategy) continue;
    ++seeds;
    for (const Look& look : curve.looks) values[look.at].push_back(look.value);
  }
  std::vector<Look> means;
  for (const auto& [step, seen] : values) {
    if (seen.size() < seeds) continue;
    double sum = 0;
    for (const double value : seen) sum += value;
    if (std::isfinite(sum)) means.push_back({step, sum / static_cast<double>(seeds)});
  }
  return means;
}

WorthRow evaluated(const Worth& worth, const Strategy& strategy, const Reach& reach,
                   const measure::ExecutorFactory& make_executor,
                   const std::optional<tune::TuneOptions>& search) {
  const Scenario scenario = over_steps(worth.scenario, reach.at);
  WorthRow row;
  row.name = strategy.name;
  row.strategy = search ? searched_strategy(scenario, strategy, *search) : strategy;
  row.reach = reach;
  row.step = tune::Evaluator(scenario, make_executor).step_time(row.strategy);
  row.sensitivity = measure::Uncertainties(scenario, worth.fit_errors).sensitivity(row.strategy);
  row.step_interval = measure::interval_of(row.step, row.sensitivity);
  row.time = row.step * reach.at;
  // A training's spread is its own: rows do not share it, as they do not share collisions.
  for (double* own : {&row.sensitivity.own, &row.sensitivity.hashed}) {
    *own = std::hypot(*own, reach.spread.value_or(0));
  }
  row.interval = measure::interval_of(row.time, row.sensitivity);
  for (const Look& look : mean_curve(worth.objective.curves, row.name)) {
    row.seen.push_back({look.at * row.step, look.value});
  }
  return row;
}

void compare(Worth& worth) {
  auto& rows = worth.rows;
  std::ranges::stable_sort(rows, {}, &WorthRow::time);
  const WorthRow* base = worth.baseline();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + 1 < rows.size()) {
      rows[i].chance_over_next = measure::chance_shorter(rows[i].time, rows[i].sensitivity,
                                                         rows[i + 1].time, rows[i + 1].sensitivity);
    }
    rows[i].gain = 0;
    if (base == nullptr) continue;
    rows[i].gain = base->time / rows[i].time;
    rows[i].gain_interval =
        &rows[i] == base
            ? measure::Interval{1, 1}
            : measure::ratio_interval(rows[i].gain, base->sensitivity, rows[i].sensitivity);
  }
}

void add_measured(Worth& worth) {
  const Objective& objective = worth.objective;
  for (const Reach& reach : reaches_of(objective.measured, objective.quantity, objective.target)) {
    for (WorthRow& row : worth.rows) {
      if (row.name == reach.strategy) row.measured = reach;
    }
  }
}

// Adds the bandwidth up to which each strategy beats the baseline.
void add_break_evens(const input::Document& document, Worth& worth) {
  const WorthRow* base = worth.baseline();
  if (base == nullptr) return;
  const tune::Takes takes = [&](const Scenario& scenario, const Strategy& strategy) {
    const auto row = std::ranges::find(worth.rows, strategy.name, &WorthRow::name);
    const double steps = row->reach.at;
    return steps * tune::step_by_model(over_steps(scenario, steps), row->strategy);
  };
  for (WorthRow& row : worth.rows) {
    if (&row != base) row.even = tune::bandwidth_break_even(document, row.name, base->name, takes);
  }
}

}  // namespace

std::optional<double> measured_ratio(const WorthRow& row) {
  if (!row.measured || !row.measured->always()) return std::nullopt;
  return row.time / row.measured->at;
}

const WorthRow* Worth::baseline() const {
  const auto found = std::ranges::find(rows, scenario.baseline, &WorthRow::name);
  return found == rows.end() ? nullptr : &*found;
}

Worth worth_of(const input::Document& document, Objective objective, const std::string& executor,
               const measure::ExecutorFactory& make_executor,
               const std::optional<tune::TuneOptions>& search) {
  const auto [fitted, fit_errors] = measure::calibrate_document(document);
  Worth worth;
  worth.scenario = input::parse_lone_scenario(fitted);
  worth.fit_errors = fit_errors;
  worth.objective = std::move(objective);
  worth.searched = search.has_value();
  worth.executor = executor;
  worth.warnings = measure::warnings_of(fitted, worth.scenario);

  auto reaches =
      reaches_of(worth.objective.curves, worth.objective.quantity, worth.objective.target);
  for (const Strategy& strategy : worth.scenario.strategies) {
    const auto reach = std::ranges::find(reaches, strategy.name, &Reach::strategy);
    if (reach == reaches.end()) {
      worth.none.push_back(strategy.name);
      continue;
    }
    if (reach->always()) {
      worth.rows.push_back(evaluated(worth, strategy, *reach, make_executor, search));
    } else {
      worth.never.push_back(*reach);
    }
    reaches.erase(reach);
  }
  for (const Reach& reach : reaches) worth.left.push_back(reach.strategy);
  if (worth.rows.empty() && worth.never.empty()) {
    throw InputError("no strategy of the scenario has a curve: found curves of '" +
                     worth.left.front() + "', expected names such as '" +
                     worth.scenario.strategies.front().name + "'");
  }
  compare(worth);
  add_measured(worth);
  add_break_evens(fitted, worth);
  return worth;
}

}  // namespace syncline::worth
