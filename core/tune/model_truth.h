// What the closed-form model says of a scenario's strategies, on the scenario as it stands: the
// truth of an emulated machine, and the costs by which a framework's best configuration is found.
#pragma once

#include <memory>

#include "core/measure/study.h"
#include "core/tune/live_report.h"

namespace syncline::tune {

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

}  // namespace syncline::tune
