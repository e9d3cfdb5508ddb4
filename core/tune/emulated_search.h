// A search on an emulated machine: the closed-form model with noise, whose truth is known. No step
// is run; the searches are graded by it, and tried without machines.
#pragma once

#include <functional>

#include "core/tune/live_report.h"
#include "core/tune/model_truth.h"
#include "core/tune/watched_objective.h"

namespace syncline::tune {

struct EmulatedSearch {
  double noise = 0.02;  // of a step, relative to the truth
  MeasurementWatch evaluation;
  // The journal in which evaluations are kept, of a search on this objective; nullptr: in none.
  std::function<Journal*(const LiveObjective&)> journal = [](const LiveObjective&) {
    return nullptr;
  };
};

// Fills a begun report's tuning and truth. `truth` is of the report's scenario.
void search_emulated(const EmulatedSearch& search, ModelTruth& truth, LiveReport& report);

}  // namespace syncline::tune
