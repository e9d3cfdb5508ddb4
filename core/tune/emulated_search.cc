#include "core/tune/emulated_search.h"

#include <algorithm>

#include "core/run/executor.h"

namespace syncline::tune {

void search_emulated(const EmulatedSearch& search, ModelTruth& truth, LiveReport& report) {
  EmulatedObjective emulated(
      [&](const Candidate& candidate) { return truth.step_time(candidate.strategy); },
      search.noise);
  WatchedObjective machine(emulated, search.evaluation);
  report.tuning = tune_live(report.problem, report.settings, machine, search.journal(machine));
  report.truth = truth.of(report);
}

ModelTruth::ModelTruth(const Scenario& scenario)
    : scenario_(scenario),
      cache_(scenario.cluster),
      executor_(run::make_model_executor({scenario.cluster, scenario.simulation, scenario.seed})) {}

Seconds ModelTruth::step_time(const Strategy& strategy) {
  return measure::evaluate_strategy(scenario_, strategy, *executor_, cache_).metrics.step_time;
}

Emitted ModelTruth::emitted(const dialect::Dialect& dialect, const LiveReport& report) {
  return best_config(dialect, report.best().strategy, scenario_, *executor_, cache_);
}

KnownTruth ModelTruth::of(const LiveReport& report) {
  KnownTruth known;
  known.best = known.least = step_time(report.best().strategy);
  known.baseline = step_time(baseline_of(scenario_));
  for (const auto& candidate : report.problem.candidates) {
    known.least = std::min(known.least, step_time(candidate.strategy));
  }
  return known;
}

}  // namespace syncline::tune
