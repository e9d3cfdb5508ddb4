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

// A change that is worth trying, not yet predicted.
struct Change {
  std::string text;   // in words, with the keys that say it
  Strategy strategy;  // with that change
  Json config = {};   // of its dialect; null: the text is in our keys
};

// Returns changes of how a strategy trains: rounding, compression and rarer averaging, as far as
// its dialect and the device have them. Changes with words in the dialect of `written` go first.
std::vector<Change> training_changes(const Scenario& scenario, const Strategy& strategy,
                                     const Json* written);

// Returns DiLoCo's outer steps over the outermost links, for a network that cannot carry the
// training: groups train by themselves in between. nullopt if there is one group, or gradients are
// not summed whole.
std::optional<Change> outer_steps(const Scenario& scenario, const Strategy& strategy);

struct Advice : Prediction {
  // The change in plain words with our keys; for a strategy of a dialect in that framework's keys
  // ("fuse_grad_size_in_MB: 16 -> 8"), or in ours and "which cannot be written in paddle".
  std::string change;
  Strategy strategy;        // the strategy with that change
  double gain_percent = 0;  // how much shorter the step becomes
  TrainingChange training = TrainingChange::kSame;
};

// Returns the best change of each kind (fusion, copies, streams, overlap, hierarchy, algorithm,
// rounding, compression, rarer averaging) that shortens the step by at least `least_percent`, best
// first. The strategy is evaluated at the scenario's training point. Kinds with no change left are
// omitted, and so are changes that do not fit the device's memory. Another scheme of the
// framework has to gain 5 %; if the strategy does not fit, one that does comes first, at any speed.
//
// `written`: the strategy's entry in the scenario ({"dialect": ..., "config": ...}), if known. In a
// dialect, changes of its configuration go first, each read back as the framework reads it; one of
// ours is added if it gains at least `least_percent` more.
std::vector<Advice> advise(const Scenario& scenario, const Strategy& strategy,
                           run::Executor& executor, collective::CostCache& cache,
                           double least_percent, const Json* written = nullptr);

}  // namespace syncline::measure
