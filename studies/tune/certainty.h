// How sure the answer of a search is: what the best gains and how likely that is, which sizes of
// buckets do as well, which of the inputs that may be off would change the choice, and what to
// measure next.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/rows/uncertainty.h"
#include "studies/tune/tuner.h"
#include "studies/tune/verdicts.h"

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

struct Certainty {
  measure::Sensitivity choice;
  measure::Sensitivity baseline;
  measure::Interval step;          // 80 % of the step time of the best
  measure::Interval gain;          // and of its speedup over the baseline
  double chance = 0.5;             // that it beats the baseline
  std::vector<SizeRange> as_good;  // all that are, in rising order
  // The best's own, where it is one of the curve, and what it loses whatever input is off, the
  // costliest first.
  std::optional<Bytes> size;
  std::vector<SizeSensitivity> size_sensitivities;
};

// Of what a search found on this scenario; fills the intervals of the ranking and the losses of the
// defaults.
Certainty certainty_of(const Scenario& scenario, const measure::FitErrors& fit_errors, Tuned& tuned,
                       std::vector<FrameworkDefault>& defaults);

// The cheapest measurement that would settle a choice: by value of information, the share of a step
// that is expected to be saved by choosing after it rather than now (normal logarithms).

enum class Probe {
  kLogs,    // nccl-tests with the sizes and counts of the two plans: some seconds, no job
  kSteps,   // a step of each of the two (`calibrate steps`)
  kRecord,  // a recorded job (`record`)
};

// What a measurement leaves open: these standard deviations, of log(true / said), in place of what
// was assumed. tests/tune/next_measurement_test.cc makes the first of logs that are here.
measure::FitErrors fit_errors_by(Probe probe, const measure::FitErrors& before);
// And the scenario of which that is asked.
Scenario measured_scenario(Probe probe, const Scenario& scenario);

struct NextMeasurement {
  Probe what = Probe::kLogs;
  std::string choice, rival;  // the best, and the strategy that it may not be faster than
  double saved = 0;           // share of a step, expected
  double chance = 0;          // that the best is the faster one, now
  double chance_after = 0;    // that whichever is then taken is
  // 80 % of the best's step and of its speedup over the rival, where the prediction is right.
  measure::Interval step_now, step_after, gain_now, gain_after;
  std::string command;  // the line to run; of steps none
};

// Nothing where the choice is clear (95 % and more), or no measurement is worth half a percent of a
// step.
std::optional<NextMeasurement> next_measurement(const Scenario& scenario,
                                                const measure::FitErrors& fit_errors,
                                                const Tuned& tuned);

// The nccl-tests of the collective that takes most of both plans' time: sizes as powers of two that
// hold all of its payloads. Empty where they have none.
std::string log_command(const Scenario& scenario, const Strategy& one, const Strategy& other);

}  // namespace syncline::tune
