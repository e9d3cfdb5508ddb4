// What a live search on a scenario chooses from, and how the model ranks it: the configurations and
// fusions of the scenario's search, evaluated by the planner and the closed-form model on the
// scenario's cluster with every latency and bandwidth multiplied by each model's factors.
#pragma once

#include <functional>

#include "core/base/units.h"
#include "formats/scenario/search.h"
#include "studies/machines/bayesian_search.h"

namespace syncline::tune {

// One model of a search: what it multiplies the cost model's latency and its time a byte with.
struct MemberFactors {
  double latency = 1;
  double transfer = 1;
  double log_weight = 0;
};
// The true latency and bandwidth are log-normal around the model's, with the factor 2 as a standard
// deviation. The models stand on a square grid over the logarithms, to two standard deviations each
// way, `steps` of them to a deviation.
std::vector<MemberFactors> member_factors(int steps);

// cost(candidate, model), both by index: the model's step time.
Ensemble evaluate_ensemble(const std::vector<MemberFactors>& factors, std::size_t candidates,
                           const std::function<Seconds(std::size_t, std::size_t)>& cost);

struct LiveSpace {
  int steps = 1;  // of member_factors: a coarse grid, as each candidate is evaluated by each model
  // Rules by size or count of one configuration, at most; of more a sample, evenly over the list.
  std::size_t most_rules = 12;
  // A candidate stays if some model puts it within this much of that model's best, relative.
  double margin = 0.5;
};

// In each configuration the explicit buckets that are optimal under any model (where the search has
// "optimum") and its rules. Axes: number of buckets, bytes of the last one, streams, algorithm, and
// what else distinguishes configurations. Throws InputError if nothing fits the cluster.
SearchProblem live_problem(const Scenario& scenario, const Search& search,
                           const LiveSpace& space = {});

// The scenario on a cluster with every tier's latency multiplied by `latency`, and the time of its
// bytes by `transfer`.
Scenario scaled_scenario(Scenario scenario, const MemberFactors& factors);

}  // namespace syncline::tune
