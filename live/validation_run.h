// A scenario's strategies, each predicted and then run by the ranks: one plan goes to an executor
// that predicts and to a live one that measures, and both timelines become a row of the report
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
  LiveExecutorFactory backend;         // called once a strategy, on all ranks
  bool operators = false;              // it runs the workload's operators, not timers
  measure::ExecutorFactory predictor;  // called once a strategy, on rank 0 alone
  // Measure the links first and predict with what was found; nothing: the scenario's figures stand.
  std::optional<LinkCalibrationSettings> calibration;
  int warmup = 2;            // periods that are run first and not measured
  int repeats = 9;           // periods that are measured
  bool check_values = true;  // compare what was exchanged with the host executor's values
  bool real_values = false;  // gradients of real numbers instead of integers
};

// One plan's two timelines, of the workload that it is for.
struct PlanPair {
  const Strategy& strategy;
  const Workload& workload;
  const plan::Plan& plan;
  const run::Timeline& predicted;
  const run::Timeline& measured;
};

// What the run tells while it goes on; all but `interrupted` are called on rank 0 alone.
struct ValidationHooks {
  std::function<void()> calibrating = [] {};
  std::function<void(const LinkCalibration&)> calibrated = [](const LinkCalibration&) {};
  std::function<void(const Strategy&, Seconds step)> predicted = [](const Strategy&, Seconds) {};
  std::function<void(const PlanPair&, Seconds median)> measured = [](const PlanPair&, Seconds) {};
  // The report has one more row.
  std::function<void(const measure::ValidatedRow&)> row = [](const measure::ValidatedRow&) {};
  // Asked ahead of each row. Rank 0's answer ends all ranks at the same row.
  std::function<bool()> interrupted = [] { return false; };
};

// Called on all ranks together, as many as the scenario's cluster has. Fills `report` as it goes;
// what it cannot know (names of backend and executor, the version, the date, the links in words) is
// the caller's. The rows' predictions are rank 0's alone; whether values match is the same on every
// rank.
void run_validation(const ValidationRun& run, ControlChannel& channel, const ValidationHooks& hooks,
                    measure::Validation& report);

// Returns the codec that some strategy uses, whose cost a calibration measures too; nullptr: none
// does. Factors of low rank are products of whole buckets, whose cost the device's rates predict.
const compress::Codec* codec_of(const std::vector<Strategy>& strategies);

// Returns whether no row ended with values other than the host executor's.
bool all_values_match(const measure::Validation& report);

}  // namespace syncline::live
