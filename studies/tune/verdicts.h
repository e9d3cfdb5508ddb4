// What a person wants to know beside the winner: where another strategy would begin to pay, and
// what rarer averaging brings. Figures only; reports/ puts them into words.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/input/document.h"
#include "studies/rows/prediction.h"
#include "studies/tune/evaluator.h"

namespace syncline::tune {

// Where `strategy` begins to be faster than `against` as one key of the scenario varies.
struct BreakEven {
  std::string strategy;
  std::string against;
  std::string path;         // of the key
  double now = 0;           // its value in the scenario
  double gain_percent = 0;  // now: how much less the strategy takes; below 0: more
  // The value at which the two are equal; it pays below it for a bandwidth, from it on for nodes.
  // Nothing: the same answer at all values that were tried, from `least` to `most`.
  std::optional<double> value;
  double least = 0, most = 0;

  bool pays_now() const { return gain_percent > 0; }
};

// What a strategy takes in a scenario.
using Takes = std::function<Seconds(const Scenario& scenario, const Strategy& strategy)>;

// A step, by the model.
Seconds step_by_model(const Scenario& scenario, const Strategy& strategy);

// The bandwidth (Gbit/s, as the key says) of the outermost level, by bisection between a thousandth
// and a thousand times what it is; the highest of several. Nothing for one rank.
std::optional<BreakEven> bandwidth_break_even(const input::Document& document,
                                              const std::string& strategy,
                                              const std::string& against,
                                              const Takes& takes = step_by_model);

// The number of nodes, among those up to 1,024 for which the scenario is valid; the smallest from
// which on it pays at every doubling.
std::optional<BreakEven> nodes_break_even(const input::Document& document,
                                          const std::string& strategy, const std::string& against);

// Strategies that average parameters, with what was published for them.
struct Averaging : measure::Prediction {
  std::string strategy;
  std::int64_t period = 0;  // 0: adaptive
  std::optional<Published> published;
};
std::vector<Averaging> averaging_of(Evaluator& evaluator);

// Each framework's own default on this workload and cluster; overlap as in `base`, because that is
// what the machine does.
struct FrameworkDefault : measure::Prediction {
  std::string dialect;
  Json config;
  Strategy strategy;
  double loss_percent = 0;          // how much longer that is than the best's
  measure::Interval loss_interval;  // 80 % of it
};
std::vector<FrameworkDefault> framework_defaults(const Strategy& base, Evaluator& evaluator);

}  // namespace syncline::tune
