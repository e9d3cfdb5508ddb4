// Candidates of a live search on a scenario, and the models that rank them: configurations and
// fusions of the scenario's search. Planner and closed-form model evaluate them on the scenario's
// cluster, with every latency and bandwidth multiplied by each model's factors.
#pragma once

#include <functional>

#include "core/base/units.h"
#include "formats/scenario/search.h"
#include "studies/machines/bayesian_search.h"

namespace syncline::tune {

// One model of a search: factors of the cost model's latency and of its time per byte.
struct MemberFactors {
  double latency = 1;
  double transfer = 1;
  double log_weight = 0;
};
// Returns the models: a square grid over the logarithms of both factors, to two standard deviations
// each way, `steps` points per deviation. The true latency and bandwidth are log-normal around the
// model's; a standard deviation is the factor 2.
std::vector<MemberFactors> member_factors(int steps);

// Evaluates cost(candidate, model), both by index: the model's step time.
Ensemble evaluate_ensemble(const std::vector<MemberFactors>& factors, std::size_t candidates,
                           const std::function<Seconds(std::size_t, std::size_t)>& cost);

struct LiveSpace {
  int steps = 1;  // argument of member_factors; coarse, as each model evaluates each candidate
  // Most rules by size or count per configuration; of more, an evenly spaced sample.
  std::size_t most_rules = 12;
  // Largest margin above some model's best, relative, at which a candidate stays.
  double margin = 0.5;
};

// Returns each configuration's rules and, if the search has "optimum", the explicit buckets that
// are optimal under any model. Axes: number of buckets, bytes of the last one, streams, algorithm,
// and other differences between configurations. Throws InputError if no candidate fits the cluster.
SearchProblem live_problem(const Scenario& scenario, const Search& search,
                           const LiveSpace& space = {});

// Returns the scenario with every tier's latency multiplied by `latency`, and the time of its bytes
// by `transfer`.
Scenario scaled_scenario(Scenario scenario, const MemberFactors& factors);

}  // namespace syncline::tune
