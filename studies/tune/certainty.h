// Certainty of a search's answer: gain and chance of the best, the bucket sizes that do as well,
// the uncertain inputs that would change the choice, and the next measurement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/rows/uncertainty.h"
#include "studies/tune/tuner.h"
#include "studies/tune/verdicts.h"

namespace syncline::tune {

// Largest relative cost above the best size at which a size counts as equally good.
inline constexpr double kAsGood = 0.01;

// A range of sizes on the curve, both ends included.
struct SizeRange {
  Bytes low = 0;
  Bytes high = 0;
};

// Effect of one input, at an end of its 80 % interval, on the choice of a size.
struct SizeSensitivity {
  measure::Uncertainty uncertainty = measure::Uncertainty::kLatency;
  bool slower = false;
  Bytes best = 0;           // the best size then
  double lost_percent = 0;  // cost of the chosen size above `best` then
};

struct Certainty {
  measure::Sensitivity choice;
  measure::Sensitivity baseline;
  measure::Interval step;          // 80 % interval of the best's step time
  measure::Interval gain;          // 80 % interval of its speedup over the baseline
  double chance = 0.5;             // chance that it beats the baseline
  std::vector<SizeRange> as_good;  // all of them, in rising order
  // Size of the best, if it is on the curve, and its losses per uncertain input, the costliest
  // first.
  std::optional<Bytes> size;
  std::vector<SizeSensitivity> size_sensitivities;
};

// Returns the certainty of a search's result on this scenario. Fills in the sensitivities and
// intervals of the ranking, the baseline's sensitivity, and the losses of the defaults.
Certainty certainty_of(const Scenario& scenario, const measure::FitErrors& fit_errors, Tuned& tuned,
                       std::vector<FrameworkDefault>& defaults);

// The cheapest measurement that would settle a choice, by value of information: the expected share
// of a step saved by choosing after it rather than now (normal logarithms).

enum class Probe {
  kLogs,    // nccl-tests with the sizes and counts of the two plans: some seconds, no job
  kSteps,   // a step of each of the two (`calibrate steps`)
  kRecord,  // a recorded job (`record`)
};

// Returns the errors left after a measurement: standard deviations of log(true / predicted).
// tests/tune/next_measurement_test.cc derives the first from logs of the repository.
measure::FitErrors remaining_fit_errors(Probe probe, const measure::FitErrors& before);
// Returns the inputs that a measurement tells something about.
std::vector<measure::Uncertainty> told_inputs(Probe probe);
// Returns the scenario after a measurement, which may narrow the spread of the overlap.
Scenario measured_scenario(Probe probe, const Scenario& scenario);

struct NextMeasurement {
  Probe what = Probe::kLogs;
  std::string choice, rival;  // the best, and a strategy that may be faster
  double saved = 0;           // expected share of a step
  double chance = 0;          // chance now that `choice` is faster than `rival`
  double chance_after = 0;    // chance that the choice made after the measurement is the faster one
  // 80 % intervals, now and after a measurement that confirms the prediction: of the best's step
  // and of its speedup over the rival.
  measure::Interval step_now, step_after, gain_now, gain_after;
  std::string command;  // command to run; empty for steps
};

// Returns the next measurement; nullopt if the choice is clear (95 % and more), or no measurement
// is worth half a percent of a step. Requires the sensitivities that certainty_of() fills in.
std::optional<NextMeasurement> next_measurement(const Scenario& scenario,
                                                const measure::FitErrors& fit_errors,
                                                const Tuned& tuned);

// Returns the nccl-tests command for the collective that takes most of both plans' time. Its sizes
// are powers of two around all payloads. Empty if the plans have no such collective.
std::string log_command(const Scenario& scenario, const Strategy& one, const Strategy& other);

}  // namespace syncline::tune
