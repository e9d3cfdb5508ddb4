// What a live search on a scenario chooses from, and how the model ranks it: the arms and fusions
// of the scenario's search, priced by the planner and the closed-form model on the scenario's
// cluster with every latency and bandwidth multiplied by each guide's factors.
#pragma once

#include "core/scenario/search.h"
#include "core/tune/guides.h"

namespace syncline::tune {

struct LiveSpace {
  ModelDoubt doubt{2, 1};  // a coarse grid: every candidate is priced under every guide
  // Rules by size or count of one arm, at most; of more a sample, evenly over the list.
  std::size_t most_rules = 12;
  // A candidate stays if some guide puts it within this much of that guide's best, relative.
  double margin = 0.5;
};

// In each arm the explicit buckets that are optimal under any guide (where the search has
// "optimum") and its rules. Axes: number of buckets, bytes of the last one, streams, algorithm, and
// what else distinguishes arms. Throws InputError if nothing fits the cluster.
SearchProblem live_problem(const Scenario& scenario, const Search& search,
                           const LiveSpace& space = {});

// The scenario on a cluster with every tier's latency multiplied by `latency`, and the time of its
// bytes by `transfer`.
Scenario scaled_scenario(Scenario scenario, const GuideFactors& factors);

}  // namespace syncline::tune
