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

// What the search measures: all ranks run a candidate together. Rank 0 searches and says which
// candidate comes next; the other ranks follow its orders.
class RanksObjective {
 public:
  struct Settings {
    std::string backend_name;
    LiveExecutorFactory backend;
    bool check_values = true;  // compare what was exchanged with the host executor's values
  };
  // All arguments must outlive it, and the problem be the same on every rank.
  RanksObjective(const Settings& settings, const Scenario& scenario,
                 const tune::SearchProblem& problem, ControlChannel& channel);

  // Rank 0's part.

  std::string source() const;
  // `candidate` is one of the problem's. Throws MachineError where a rank failed or values differ.
  tune::Measurement measure(const tune::Candidate& candidate, const tune::Evaluation& evaluation);
  // Returns the scenario's baseline, which need not be a candidate.
  tune::Measurement measure_baseline(int steps);
  // The other ranks return from follow().
  void dismiss();

  // The other ranks' part: runs what rank 0 orders, until it dismisses them.
  void follow();

 private:
  struct Order {
    long long index = 0;  // of a candidate, or kBaseline
    int steps = 0;
  };
  Order order_in(const std::string& text) const;
  tune::Measurement run(const Strategy& strategy, int steps);

  const Settings& settings_;
  const Scenario& scenario_;
  const tune::SearchProblem& problem_;
  ControlChannel& channel_;
  const std::size_t rank_;
  std::unique_ptr<LiveExecutor> executor_;
  run::Gradients input_;  // this rank's alone
  run::SampleValues values_ = run::SampleValues::kIntegers;
};

struct RanksSearch {
  RanksObjective::Settings machine;
  bool sweep = false;  // measure every candidate after a search that was not interrupted
};

// What the search asks for and tells while it goes on; called on rank 0 alone.
struct RanksSearchHooks {
  // The journal in which evaluations are kept, of a search on this objective; nullptr: in none.
  std::function<tune::Journal*(const tune::LiveObjective&)> journal =
      [](const tune::LiveObjective&) { return nullptr; };
  tune::MeasurementWatch evaluation;
  std::function<void()> sweeping = [] {};
  tune::MeasurementWatch swept;
};

// Called on all ranks together, with the same scenario and the same begun report (its problem and
// settings). Returns on rank 0 with the report's tuning in place, and with its truth where it was
// swept; on the other ranks once rank 0 has dismissed them.
void search_on_ranks(const RanksSearch& search, const Scenario& scenario, ControlChannel& channel,
                     const RanksSearchHooks& hooks, tune::LiveReport& report);

}  // namespace syncline::live
