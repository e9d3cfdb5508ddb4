// What a live search on a scenario chooses from, and how the model ranks it: the configurations and
// fusions of the scenario's search, evaluated by the planner and the closed-form model on the
// scenario's cluster with every latency and bandwidth multiplied by each model's factors.
#pragma once

#include "core/scenario/search.h"
#include "core/tune/ensemble.h"

namespace syncline::tune {

struct LiveSpace {
  ModelUncertainty uncertainty{2,
                               1};  // a coarse grid: every candidate is evaluated under every model
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
