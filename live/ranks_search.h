// A search on the ranks of a live backend from its first evaluation to its last, and the sweep over
// all candidates that grades it. This is `syncline tune --live gloo` without its options, files and
// printing.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/run/sample_gradients.h"
#include "live/live_executor.h"
#include "studies/machines/live_tuner.h"

namespace syncline::live {

// Measures candidates on all ranks together. Rank 0 searches and orders the next candidate; the
// other ranks follow its orders.
class RanksObjective {
 public:
  struct Settings {
    std::string backend_name;
    LiveExecutorFactory backend;
    bool check_values = true;  // compare the exchanged values with the host executor's
  };
  // Requires that the arguments outlive it, and the same problem on every rank.
  RanksObjective(const Settings& settings, const Scenario& scenario,
                 const tune::SearchProblem& problem, ControlChannel& channel);

  // Runs on rank 0, up to dismiss():

  std::string source() const;
  // Measures a candidate of the problem. Throws MachineError if a rank fails or values differ.
  tune::Measurement measure(const tune::Candidate& candidate, const tune::Evaluation& evaluation);
  // Measures the scenario's baseline, which need not be a candidate.
  tune::Measurement measure_baseline(int steps);
  // Lets the other ranks return from follow().
  void dismiss();

  // Runs rank 0's orders until it dismisses this rank. The other ranks' part.
  void follow();

 private:
  struct Order {
    long long index = 0;  // of a candidate, or kBaseline
    int steps = 0;
  };
  Order parse_order(const std::string& text) const;
  tune::Measurement run(const Strategy& strategy, int steps);

  const Settings& settings_;
  const Scenario& scenario_;
  const tune::SearchProblem& problem_;
  ControlChannel& channel_;
  const std::size_t rank_;
  std::unique_ptr<LiveExecutor> executor_;
  run::Gradients input_;  // only this rank's
  run::SampleValues values_ = run::SampleValues::kIntegers;
};

struct RanksSearch {
  RanksObjective::Settings machine;
  bool sweep = false;  // measure every candidate after a search that was not interrupted
};

// Callbacks of a search while it runs, on rank 0 only.
struct RanksSearchHooks {
  // Returns the journal that keeps the evaluations of a search on this objective; nullptr: none.
  std::function<tune::Journal*(const tune::LiveObjective&)> journal =
      [](const tune::LiveObjective&) { return nullptr; };
  tune::MeasurementWatch evaluation;
  std::function<void()> sweeping = [] {};
  tune::MeasurementWatch swept;
};

// Searches on all ranks together. Requires the same scenario and the same begun report (its problem
// and settings) on all. Rank 0 returns with the report's tuning, and its truth if it was swept; the
// other ranks return once rank 0 has dismissed them.
void search_on_ranks(const RanksSearch& search, const Scenario& scenario, ControlChannel& channel,
                     const RanksSearchHooks& hooks, tune::LiveReport& report);

}  // namespace syncline::live
