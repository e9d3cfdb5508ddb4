// What a search on a machine says: its answer, every evaluation in order, and where the figures
// come from. The same text whether the search ran in one go or was resumed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tune/dialect_search.h"
#include "core/tune/live_tuner.h"

namespace syncline {

// How good the answer really is: known for an emulated machine, measured by an exhaustive sweep on
// a real one.
struct KnownTruth {
  bool measured = false;  // by a sweep over all candidates
  Seconds best = 0;       // the answer's true step time
  Seconds least = 0;      // the least of all candidates
  Seconds baseline = 0;   // the scenario's baseline
};

struct LiveReport {
  std::string scenario;  // names, as the scenario has them
  std::string workload;
  std::string cluster;
  std::string baseline;
  std::string guide;  // what ranked the candidates, in words
  SearchProblem problem;
  LiveSettings settings;
  LiveTuning tuning;
  std::optional<KnownTruth> truth;
  std::optional<Emitted> emitted;
  std::string emitted_dialect;

  const Candidate& best() const { return problem.candidates[tuning.state.best]; }
};

std::string live_text(const LiveReport& report);
std::string live_markdown(const LiveReport& report);
// One line an evaluation.
std::string live_csv(const LiveReport& report);
// {"best": {strategy}, "step_time_s", "relative_deviation", "evaluations", "complete", "source",
//  "observations": [{"candidate", "step_time_s", "standard_error_s"}], "verdicts": [...]}; of an
// emulated machine also "true_step_time_s", "regret_percent" (over the best candidate) and
// "baseline_s"; with an emitted configuration also "emitted".
std::string live_json(const LiveReport& report);

}  // namespace syncline
