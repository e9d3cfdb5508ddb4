#include "core/tune/emulated_search.h"

namespace syncline::tune {

void search_emulated(const EmulatedSearch& search, ModelTruth& truth, LiveReport& report) {
  EmulatedObjective emulated(
      [&](const Candidate& candidate) { return truth.step_time(candidate.strategy); },
      search.noise);
  WatchedObjective machine(emulated, search.evaluation);
  report.tuning = tune_live(report.problem, report.settings, machine, search.journal(machine));
  report.truth = truth.of(report);
}

}  // namespace syncline::tune
