// A search on an emulated machine: the closed-form model with noise, whose truth is known. No step
// is run; the searches are graded by it, and tried without machines.
#pragma once

#include <functional>
#include <memory>

#include "core/measure/study.h"
#include "core/tune/live_objective.h"
#include "core/tune/live_report.h"

namespace syncline::tune {

// What the closed-form model says of a scenario's strategies, on the scenario as it stands: the
// truth of an emulated machine, and the costs by which a framework's best configuration is found.

class ModelTruth {
 public:
  // The scenario must outlive it.
  explicit ModelTruth(const Scenario& scenario);

  Seconds step_time(const Strategy& strategy);
  // The report's best candidate as a configuration of the dialect.
  Emitted emitted(const dialect::Dialect& dialect, const LiveReport& report);
  // How good the report's answer is on a machine that is this model.
  KnownTruth of(const LiveReport& report);

 private:
  const Scenario& scenario_;
  collective::CostCache cache_;
  std::unique_ptr<run::Executor> executor_;
};

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
