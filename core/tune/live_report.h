// A search on a machine, whole: the scenario's candidates as the model ranks them, what was
// measured of them, and how good the answer is in truth, where that is known. `syncline tune
// --live` fills one and prints it.
#pragma once

#include <optional>
#include <string>

#include "core/scenario/scenario.h"
#include "core/scenario/search.h"
#include "core/tune/dialect_search.h"
#include "core/tune/live_space.h"
#include "core/tune/live_tuner.h"

namespace syncline::tune {

// How good the answer really is: known for an emulated machine, measured by an
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
  std::string member;  // what ranked the candidates, in words
  SearchProblem problem;
  LiveSettings settings;
  LiveTuning tuning;
  std::optional<KnownTruth> truth;
  std::optional<Emitted> emitted;
  std::string emitted_dialect;

  const Candidate& best() const { return problem.candidates[tuning.state.best]; }
};

// The scenario's candidates, ranked by a model whose latencies and bandwidths are off by `error`:
// the names and the problem. `all`: no candidate is left out beforehand, so that a sweep over them
// shows what leaving some out would have cost.
LiveReport begin_report(const Scenario& scenario, const Search& search, const MemberFactors& error,
                        bool all);

// The scenario's own baseline. Requires a scenario that was read, which has one.
const Strategy& baseline_of(const Scenario& scenario);

}  // namespace syncline::tune
