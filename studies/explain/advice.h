// Changes that make a strategy faster: one knob at a time, evaluated by the model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/cost.h"
#include "core/executor.h"
#include "formats/scenario/scenario.h"
#include "studies/rows/prediction.h"

namespace syncline::measure {

// How a strategy trains, compared with another one.
enum class TrainingChange {
  kSame,     // the same sums of gradients at every step
  kRounded,  // of gradients rounded to 16 bits
  kChanged   // sparser, coarser or rarer sums
};
std::string_view word_of(TrainingChange training);  // "same", "rounded", "changed"
TrainingChange training_beside(const Strategy& strategy, const Strategy& base);

// Returns true if `strategy` rounds each sum of gradients and `base` does not, or otherwise.
bool rounds_sums(const Strategy& strategy, const Strategy& base);

// A change that is worth trying, not yet predicted.
struct Change {
  std::string text;           // in words
  Strategy strategy;          // with that change
  Json config = {};           // of its dialect; null: it is set by our keys
  std::string set_with = {};  // keys of the dialect; empty: our keys
};

// Returns changes of how a strategy trains: rounding, compression and rarer averaging, as far as
// its dialect and the device have them. Changes with words in the dialect of `written` go first.
std::vector<Change> training_changes(const Scenario& scenario, const Strategy& strategy,
                                     const Json* written);

// Returns DiLoCo's outer steps over the outermost links, for a network that cannot carry the
// training: groups train by themselves in between. nullopt if there is one group, or gradients are
// not summed whole.
std::optional<Change> outer_steps(const Scenario& scenario, const Strategy& strategy);

// A decision that a person may make: a change with its gain, its memory, and what it costs in
// training. All answers show it as one row.
struct Advice : Prediction {
  std::string change;    // in words
  std::string set_with;  // keys and values that set it, or the command that writes them
  Strategy strategy;     // the strategy with that change
  TrainingChange training = TrainingChange::kSame;
  bool outside = false;  // the job's framework cannot set it

  // Returns how much shorter the step becomes; below 0: it becomes longer.
  double gain_percent() const { return 100 * (1 - 1 / speedup); }
};

// Returns the keys of a strategy that are not the base's, to be pasted into a scenario.
std::string own_keys(const Strategy& strategy, const Strategy& base);

// Returns the best change of each kind (fusion, copies, streams, overlap, hierarchy, algorithm,
// rounding, compression, rarer averaging) that shortens the step by at least `least_percent`, best
// first, and those that its framework cannot set last. The strategy is evaluated at the scenario's
// training point. Kinds with no change left are omitted, and so are changes that do not fit the
// device's memory. Another scheme of the framework has to gain 5 %; if the strategy does not fit,
// one that does comes first, at any speed.
//
// `written`: the strategy's entry in the scenario ({"dialect": ..., "config": ...}), if known. In a
// dialect, changes of its configuration go first, each read back as the framework reads it; one of
// ours is added if it gains at least `least_percent` more.
std::vector<Advice> advise(const Scenario& scenario, const Strategy& strategy,
                           run::Executor& executor, collective::CostCache& cache,
                           double least_percent, const Json* written = nullptr);

}  // namespace syncline::measure
