// The ways to train otherwise than the baseline (gradients rounded, compressed or rarely averaged),
// each with its candidate strategies.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "studies/tune/setting.h"

namespace syncline::tune {

// The candidates of one way, the simplest first.
struct TrainingWay {
  std::string name;  // "fp16", "powersgd", "local_sgd"
  bool own = false;  // a strategy or the search of the scenario names it
  std::vector<Settable> choices;
};

// Returns `knobs` with the training of `training`: its compression, its LocalSGD and no overlap if
// it has none. The result belongs to no dialect.
Strategy merge_knobs(const Strategy& training, const Strategy& knobs);

class WayFinder {
 public:
  // Builds a finder. Both must outlive it.
  WayFinder(const Tuning& tuning, const SettingWriter& settings);

  // Returns the ways of the scenario's strategies and search, then others that are worth trying,
  // except on an axis that the search names. Each is tried with the other knobs of `same` too, the
  // last first. `said`: the framework's words for the best that trains the same. `waits`: that one
  // waits for the network, so DiLoCo is tried.
  std::vector<TrainingWay> find(const std::optional<Emitted>& said,
                                const std::vector<Strategy>& same, bool waits);

  // Returns names of strategies with unmeasured collectives, if the baseline's were measured.
  const std::vector<std::string>& unmeasured_strategies() const { return left_out_; }

 private:
  template <typename Value>
  void add_searched(std::vector<TrainingWay>& list, const std::vector<Value>& values,
                    Value Strategy::*axis);
  Json nearest_config(Strategy& strategy) const;
  bool is_consistent(const Strategy& strategy) const;
  void add_way(std::vector<TrainingWay>& list, const Strategy& strategy, const Json& config,
               bool own);

  const Scenario& scenario_;
  const Search& search_;
  const Tuned& tuned_;
  const Strategy& baseline_;
  const SettingWriter& settings_;
  bool measured_;  // the baseline's collectives have measured costs
  std::vector<std::string> left_out_;
};

}  // namespace syncline::tune
