#include "live/ranks_search.h"

namespace syncline::live {
namespace {

// Every candidate as the machine has it, and the baseline.
tune::KnownTruth swept_truth(RanksObjective& machine, const tune::MeasurementWatch& watch,
                             const tune::LiveReport& report) {
  tune::WatchedObjective watched(machine, watch);
  tune::KnownTruth truth;
  truth.measured = true;
  tune::Evaluation evaluation{0, report.settings.search.steps, report.settings.seed};
  const auto& candidates = report.problem.candidates;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    evaluation.number = static_cast<int>(i);
    const Seconds time = watched.measure(candidates[i], evaluation).step_time;
    if (i == 0 || time < truth.least) truth.least = time;
    if (i == report.tuning.state.best) truth.best = time;
  }
  truth.baseline = machine.measure_baseline(evaluation.steps).step_time;
  return truth;
}

}  // namespace

void search_on_ranks(const RanksSearch& search, const Scenario& scenario, ControlChannel& channel,
                     const RanksSearchHooks& hooks, tune::LiveReport& report) {
  RanksObjective machine(search.machine, scenario, report.problem, channel);
  if (channel.rank() != 0) return machine.follow();
  tune::WatchedObjective watched(machine, hooks.evaluation);
  report.tuning = tune::tune_live(report.problem, report.settings, watched, hooks.journal(watched));
  if (search.sweep && report.tuning.complete) {
    hooks.sweeping();
    report.truth = swept_truth(machine, hooks.swept, report);
  }
  machine.dismiss();
}

}  // namespace syncline::live
