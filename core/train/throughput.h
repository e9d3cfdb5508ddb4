// What a LocalSGD of measured periods is worth on a cluster: the closed-form model prices each
// period on a scenario's workload and cluster.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/input/document.h"
#include "core/plan/local_sgd.h"

namespace syncline::train {

class PeriodPrices {
 public:
  // Calibrates the document first, where it says how; LocalSGD runs as the baseline strategy does
  // otherwise. Throws InputError.
  explicit PeriodPrices(const input::Document& document);

  const std::string& workload() const { return scenario_.workload.name; }
  const std::string& cluster() const { return scenario_.cluster.name; }
  bool calibrated() const { return !scenario_.calibration.parameters.empty(); }

  // Samples a second over a training of these periods, where the workload says how many a step has.
  // Requires at least one step.
  std::optional<double> throughput(const std::vector<plan::PeriodShare>& periods);

 private:
  Seconds step_time(std::int64_t period);

  Scenario scenario_;
  std::map<std::int64_t, Seconds> priced_;
};

}  // namespace syncline::train
