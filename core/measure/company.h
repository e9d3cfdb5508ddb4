// Jobs that share a fabric, in closed form: each has of a link what the means of the others leave
// of it, but no less than its max-min fair share while their messages are on it. Steps and means
// depend on each other: a fixed point of a few rounds.
#pragma once

#include <memory>
#include <vector>

#include "core/collective/network.h"
#include "core/measure/evaluate_strategy.h"
#include "core/measure/report.h"

namespace syncline::measure {

// What a step of a job does to a link.
struct LinkUse {
  Seconds busy = 0;     // bytes / capacity
  Seconds present = 0;  // for which some of its messages are on it
  double messages = 0;  // at once, in the mean over the bytes
};

// By the network's link. The plan's costs are in the cache.
std::vector<LinkUse> link_use(const plan::Plan& plan, const collective::Network& network,
                              collective::CostCache& cache);

// A strategy beside the scenario's other jobs.
struct Together {
  Cluster cluster;                                 // whose links have what the others leave
  std::shared_ptr<const fabric::Topology> fabric;  // as it is
  Company company;
  std::shared_ptr<collective::CostCache> cache;  // on these
  std::vector<run::Beside> others;               // for an executor that runs them
  std::vector<std::vector<double>> bytes;        // a step, by job and link of the fabric
};

Together together(const Scenario& scenario, const Strategy& strategy);

// The scenario by itself, on what the others leave of each link while its baseline trains. Other
// strategies load links otherwise: the others' own steps then change, which this does not follow.
Scenario beside_others(Scenario scenario);

// Fills in the hot links, for steps as long as the company says.
void find_hot_links(Together& together);

}  // namespace syncline::measure
