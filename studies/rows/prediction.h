// A strategy's step as it is predicted, how sure that is, and its gain over the baseline: the part
// that the rows of all answers share.
#pragma once

#include "core/metrics.h"
#include "studies/rows/interval.h"
#include "studies/rows/memory.h"
#include "studies/rows/uncertainty.h"

namespace syncline::measure {

struct Prediction {
  Metrics metrics = {};
  Memory memory = {};            // of the rank that holds most
  Sensitivity sensitivity = {};  // of the step time to its inputs
  Interval step = {};            // seconds, 80 % of the step time
  double speedup = 1;            // over the baseline, or the row's own comparison
  Interval gain = {};            // 80 % of the speedup
};

// Returns true if a step is nearly all waiting: the network cannot carry such a training.
inline bool waits_for_network(const Metrics& metrics) {
  constexpr double kNearlyAll = 0.9;
  return metrics.exposed >= kNearlyAll * metrics.step_time;
}

}  // namespace syncline::measure
