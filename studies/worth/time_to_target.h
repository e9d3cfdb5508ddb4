// Computes the time of a strategy's training to a target: the predicted time of a step times the
// steps to the target, from training curves. Both are uncertain and independent: squares of
// logarithms add up (studies/rows/uncertainty.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/input/document.h"
#include "studies/rows/uncertainty.h"
#include "studies/tune/tuner.h"
#include "studies/tune/verdicts.h"
#include "studies/worth/curves.h"

namespace syncline::worth {

struct Objective {
  Quantity quantity = Quantity::kLoss;
  double target = 0;
  std::vector<Curve> curves;    // over steps
  std::vector<Curve> measured;  // over seconds, on the scenario's cluster; for comparison
};

// A strategy with trainings that all reach the target.
struct WorthRow {
  std::string name;
  Strategy strategy;  // as evaluated: after a search with other buckets, streams, ...
  Reach reach;
  Seconds step = 0;  // mean over the steps to the target, including ramps and rare averaging
  measure::Interval step_interval;
  Seconds time = 0;
  measure::Sensitivity sensitivity;  // sensitivity of `time`
  measure::Interval interval;
  double gain = 1;  // speedup over the baseline; 0 if the baseline has no row
  measure::Interval gain_interval;
  double chance_over_next = 0;  // chance to be faster than the next row; 0 for the last
  // Bandwidth at which both are equal: costs change, the number of steps does not.
  std::optional<tune::BreakEven> even;
  std::vector<Look> seen;         // mean of its curves, over predicted seconds
  std::optional<Reach> measured;  // measured seconds to the target
};

// Returns predicted / measured; nullopt if not all measured trainings reach the target.
std::optional<double> measured_ratio(const WorthRow& row);

struct Worth {
  Scenario scenario;  // after calibration; its sweep is ignored
  measure::FitErrors fit_errors;
  Objective objective;
  bool searched = false;
  std::string executor;
  std::vector<WorthRow> rows;         // fastest first
  std::vector<Reach> never;           // strategies that do not reach the target in every training
  std::vector<std::string> none;      // strategies without a curve
  std::vector<std::string> left;      // curves without a strategy
  std::vector<std::string> warnings;  // warnings of the scenario, as in every verb (warnings.h)

  const WorthRow* baseline() const;
};

// Returns the worth of a scenario's strategies. `search`: each with the buckets, streams and
// algorithms that make it fastest without changing its training; nullopt: unchanged. Throws
// InputError if the scenario is wrong or no strategy has a curve.
Worth worth_of(const input::Document& document, Objective objective, const std::string& executor,
               const measure::ExecutorFactory& make_executor,
               const std::optional<tune::TuneOptions>& search);

}  // namespace syncline::worth
