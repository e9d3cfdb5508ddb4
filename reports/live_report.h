// What a search on a machine says: its answer, every evaluation in order, and where the figures
// come from. The same text whether the search ran in one go or was resumed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tune/dialect_search.h"
#include "core/tune/live_tuner.h"
#include "reports/answer.h"

namespace syncline {

// How good the answer is in truth: an emulated machine knows it of itself, of a real one an
// exhaustive sweep tells.
struct KnownTruth {
  bool measured = false;  // by a sweep over all candidates
  Seconds best = 0;       // the answer's true step time
  Seconds least = 0;      // the least of all candidates
  Seconds baseline = 0;   // the scenario's baseline
};

struct LiveReport {
  std::string scenario;  // names, as the scenario gives them
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

// CSV: one line an evaluation. JSON: {"best": {strategy}, "step_time_s", "relative_deviation",
// "evaluations", "complete", "source", "observations": [{"candidate", "step_time_s",
// "standard_error_s"}], "verdicts": [...], "provenance"}; of an emulated machine also
// "true_step_time_s", "regret_percent" (over the best candidate) and "baseline_s"; with an emitted
// configuration also "emitted". The report must outlive the answer.
Answer answer_of(const LiveReport& report);

}  // namespace syncline
