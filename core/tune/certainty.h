// How sure the answer of a search is: what the best gains and how likely that is, which sizes of
// buckets do as well, and which of the inputs that may be off would change the choice.
#pragma once

#include <optional>
#include <vector>

#include "core/measure/uncertainty.h"
#include "core/tune/tuner.h"
#include "core/tune/verdicts.h"

namespace syncline::tune {

// Sizes of which none costs more than this above the best of them are called as good.
inline constexpr double kAsGood = 0.01;

// A range of sizes on the curve, both ends included.
struct SizeRange {
  Bytes low = 0;
  Bytes high = 0;
};

// What becomes of the choice of a size with one input at the end of its 80 % interval.
struct SizeSensitivity {
  measure::Uncertainty uncertainty = measure::Uncertainty::kLatency;
  bool slower = false;
  Bytes best = 0;           // the size that would be best then
  double lost_percent = 0;  // what the chosen size costs above it then
};

// A framework's default beside the best.
struct DefaultLoss {
  double percent = 0;          // how much longer its step is
  measure::Interval interval;  // 80 % of that, in percent
};

// 80 % of a step time, and of its speedup over the baseline.
struct RankedInterval {
  measure::Interval step;
  measure::Interval gain;
};

struct Certainty {
  std::vector<RankedInterval> ranking;  // in the order of Tuned::ranking
  measure::Sensitivity choice;
  measure::Sensitivity baseline;
  measure::Interval step;             // 80 % of the step time of Tuned::choice
  measure::Interval gain;             // and of its speedup over the baseline
  double chance = 0.5;                // that it beats the baseline
  std::vector<DefaultLoss> defaults;  // in the order of Tuning::defaults
  std::vector<SizeRange> as_good;     // all that are, in rising order
  // The best's own, where it is one of the curve, and what it loses whatever input is off, the
  // costliest first.
  std::optional<Bytes> size;
  std::vector<SizeSensitivity> size_sensitivities;
};

// Of what a search found on this scenario.
Certainty certainty_of(const Scenario& scenario, const measure::FitErrors& fit_errors,
                       const Tuned& tuned, const std::vector<FrameworkDefault>& defaults);

}  // namespace syncline::tune
