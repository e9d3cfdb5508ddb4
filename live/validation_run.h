// A scenario's strategies, each predicted and then run by the ranks: a predicting and a live
// executor run the same plan, and both timelines become a row of the report
// (studies/fidelity/validation.h). This is `syncline validate` without its options, files and
// printing.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "live/link_calibration.h"
#include "live/live_executor.h"
#include "studies/fidelity/validation.h"
#include "studies/study/study.h"

namespace syncline::live {

struct ValidationRun {
  Scenario scenario;                   // all of its strategies are run, in order
  LiveExecutorFactory backend;         // called once per strategy, on all ranks
  bool operators = false;              // it runs the workload's operators, not timers
  measure::ExecutorFactory predictor;  // called once per strategy, on rank 0 only
  // Measure the links first, for the predictions; nullopt: the scenario's figures are used.
  std::optional<LinkCalibrationSettings> calibration;
  int warmup = 2;            // periods that are run first and not measured
  int repeats = 9;           // periods that are measured
  bool check_values = true;  // compare the exchanged values with the host executor's
  bool real_values = false;  // gradients of real numbers instead of integers
};

// A plan's two timelines, and its workload.
struct PlanPair {
  const Strategy& strategy;
  const Workload& workload;
  const plan::Plan& plan;
  const run::Timeline& predicted;
  const run::Timeline& measured;
};

// Callbacks of a run; all but `interrupted` are called on rank 0 only.
struct ValidationHooks {
  std::function<void()> calibrating = [] {};
  std::function<void(const LinkCalibration&)> calibrated = [](const LinkCalibration&) {};
  std::function<void(const Strategy&, Seconds step)> predicted = [](const Strategy&, Seconds) {};
  std::function<void(const PlanPair&, Seconds median)> measured = [](const PlanPair&, Seconds) {};
  // Receives each new row of the report.
  std::function<void(const measure::ValidatedRow&)> row = [](const measure::ValidatedRow&) {};
  // Returns true to end all ranks at the same row, by rank 0's answer; called before each.
  std::function<bool()> interrupted = [] { return false; };
};

// Runs the strategies on all ranks together. Requires the number of ranks of the scenario's
// cluster. Fills `report` as it goes, except names of backend and executor, version, date, and
// links in words. Predictions are rank 0's only; each rank knows if values match.
void run_validation(const ValidationRun& run, ControlChannel& channel, const ValidationHooks& hooks,
                    measure::Validation& report);

// Returns a codec that some strategy uses and a calibration should measure; nullptr: none. Codecs
// of low rank are left out: their products of matrices are predicted by the device's rates.
const compress::Codec* codec_of(const std::vector<Strategy>& strategies);

// Returns true unless a row ended with values other than the host executor's.
bool all_values_match(const measure::Validation& report);

}  // namespace syncline::live
