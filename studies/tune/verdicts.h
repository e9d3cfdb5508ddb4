// Break-evens of other strategies, and the gain of less frequent averaging. Figures only; reports/
// words them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/input/document.h"
#include "studies/rows/prediction.h"
#include "studies/tune/evaluator.h"

namespace syncline::tune {

// Value of one key of the scenario at which `strategy` becomes faster than `against`.
struct BreakEven {
  std::string strategy;
  std::string against;
  std::string path;         // path of the key
  double now = 0;           // its value in the scenario
  double gain_percent = 0;  // time that the strategy saves at `now`; below 0: it takes longer
  // Value at which both are equal. The strategy pays below a bandwidth, and from a number of nodes
  // on. nullopt: the same answer at all values tried, from `least` to `most`.
  std::optional<double> value;
  double least = 0, most = 0;

  bool is_faster() const { return gain_percent > 0; }
};

// Returns the time of a strategy in a scenario.
using Takes = std::function<Seconds(const Scenario& scenario, const Strategy& strategy)>;

// Returns the time of a step by the model.
Seconds step_by_model(const Scenario& scenario, const Strategy& strategy);

// Returns the break-even bandwidth (Gbit/s) of the outermost level, the highest of several, by
// bisection from a thousandth to a thousand times the present one. nullopt for one rank.
std::optional<BreakEven> bandwidth_break_even(const input::Document& document,
                                              const std::string& strategy,
                                              const std::string& against,
                                              const Takes& takes = step_by_model);

// Returns the break-even number of nodes, up to 1,024 and valid in the scenario: the smallest from
// which on the strategy pays at every doubling.
std::optional<BreakEven> nodes_break_even(const input::Document& document,
                                          const std::string& strategy, const std::string& against);

// A strategy that averages parameters, with its published figure.
struct Averaging : measure::Prediction {
  std::string strategy;
  std::int64_t period = 0;  // 0: adaptive
  std::optional<Published> published;
};
std::vector<Averaging> averaging_of(Evaluator& evaluator);

// A framework's default on this workload and cluster; overlap as in `base`, because it is a
// property of the machine.
struct FrameworkDefault : measure::Prediction {
  std::string dialect;
  Json config;
  Strategy strategy;
  double loss_percent = 0;          // extra time over the best
  measure::Interval loss_interval;  // 80 % interval of `loss_percent`
};
std::vector<FrameworkDefault> framework_defaults(const Strategy& base, Evaluator& evaluator);

}  // namespace syncline::tune
