// What a strategy is worth: the time of its training to a target, which is the time of a step
// (predicted) times the steps to the target (of training curves). Both have their uncertain inputs,
// and they are independent of each other: squares of logarithms add up
// (studies/rows/uncertainty.h).
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
  std::vector<Curve> measured;  // over seconds, on the scenario's cluster; to compare with
};

// A strategy whose trainings all reach the target.
struct WorthRow {
  std::string name;
  Strategy strategy;  // as it is evaluated: after a search with other buckets, streams, ...
  Reach reach;
  Seconds step = 0;  // the mean over the steps to the target: ramps and rare averaging are in it
  measure::Interval step_interval;
  Seconds time = 0;
  measure::Sensitivity sensitivity;  // of that time
  measure::Interval interval;
  double gain = 1;  // how many times as fast as the baseline; 0 where that has no row
  measure::Interval gain_interval;
  double chance_over_next = 0;  // that it is there before the next row; 0 for the last
  // Where it is as fast as the baseline, as the bandwidth varies; no steps but costs change.
  std::optional<tune::BreakEven> even;
  std::vector<Look> seen;         // the mean of its curves, over the seconds that are predicted
  std::optional<Reach> measured;  // seconds to the target, by the clock
};

// Predicted over measured; nothing where it was not, or did not always get there.
std::optional<double> measured_ratio(const WorthRow& row);

struct Worth {
  Scenario scenario;  // after calibration; its sweep is ignored
  measure::FitErrors fit_errors;
  Objective objective;
  bool searched = false;
  std::string executor;
  std::vector<WorthRow> rows;         // the fastest first
  std::vector<Reach> never;           // by no training, or not by all
  std::vector<std::string> none;      // strategies without a curve
  std::vector<std::string> left;      // curves without a strategy
  std::vector<std::string> warnings;  // what every other verb says of such a scenario (warnings.h)

  const WorthRow* baseline() const;
};

// The strategies of a scenario. `search`: each with the buckets, streams and algorithms that make
// it fastest without changing its training; nothing: each as it stands. Throws InputError where the
// scenario is wrong or no strategy has a curve.
Worth worth_of(const input::Document& document, Objective objective, const std::string& executor,
               const measure::ExecutorFactory& make_executor,
               const std::optional<tune::TuneOptions>& search);

}  // namespace syncline::worth
