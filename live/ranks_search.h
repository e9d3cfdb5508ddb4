// A search on the ranks of a live backend from its first evaluation to its last, and the sweep over
// all candidates that grades it. This is `syncline tune --live gloo` without its options, files and
// printing.
#pragma once

#include <functional>

#include "core/tune/live_report.h"
#include "core/tune/watched_objective.h"
#include "live/ranks_objective.h"

namespace syncline::live {

struct RanksSearch {
  RanksObjective::Settings machine;
  bool sweep = false;  // measure every candidate after a search that was not interrupted
};

// What the search asks for and tells while it goes on; called on rank 0 alone.
struct RanksSearchHooks {
  // The journal in which evaluations are kept, of a search on this objective; nullptr: in none.
  std::function<tune::Journal*(const tune::LiveObjective&)> journal =
      [](const tune::LiveObjective&) { return nullptr; };
  tune::MeasurementWatch evaluation;
  std::function<void()> sweeping = [] {};
  tune::MeasurementWatch swept;
};

// Called on all ranks together, with the same scenario and the same begun report (its problem and
// settings). Returns on rank 0 with the report's tuning in place, and with its truth where it was
// swept; on the other ranks once rank 0 has dismissed them.
void search_on_ranks(const RanksSearch& search, const Scenario& scenario, ControlChannel& channel,
                     const RanksSearchHooks& hooks, tune::LiveReport& report);

}  // namespace syncline::live
