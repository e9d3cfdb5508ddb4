// Jobs that share a fabric, in closed form: each has of a link what the means of the others leave
// of it, but no less than its max-min fair share while their messages are on it. Steps and means
// depend on each other: a fixed point of a few rounds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cost.h"
#include "core/metrics.h"
#include "studies/rows/report.h"

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

// The cluster with what the scenario's other jobs, where there are any, leave of each link.
Cluster cluster_left(const Scenario& scenario, const Strategy& strategy);

// The scenario by itself, on what the others leave of each link while its baseline trains. Other
// strategies load links otherwise: the others' own steps then change, which this does not follow.
Scenario beside_others(Scenario scenario);

// Fills in the hot links, for steps as long as the company says.
void find_hot_links(Together& together);

// The links between nodes: which holds collectives up, what would cool it, and how busy all are.

struct HotLink {
  std::string name;   // "leaf3-spine0"
  std::string sort;   // "spine"
  Seconds busy = 0;   // of a step's collectives, were they alone on it
  Seconds ports = 0;  // the busiest port of a node or GPU, likewise
  // Each with the step that would be predicted, the shortest first; what gains nothing is left out.
  std::vector<std::pair<std::string, Seconds>> cooler;
};

// Of what was evaluated in this scenario, whose costs are in the cache. Nothing where a port is as
// busy as any link of the fabric.
std::optional<HotLink> hot_link_of(const Evaluated& evaluated, const Scenario& scenario,
                                   const Strategy& strategy, collective::CostCache& cache);

// The links of the fabric that a step fills most; so many at most.
inline constexpr std::size_t kMostLinksTraced = 4;
std::vector<LinkWork> hottest_links(const plan::Plan& plan, const Cluster& cluster,
                                    collective::CostCache& cache);

// The busiest link of a kind at a switch, or at neighbouring ones ("leaf0 to leaf3").
struct SwitchLoad {
  std::string name;
  std::string sort;
  Seconds out = 0;  // of a step's collectives, were they alone on it: away from the switch
  Seconds in = 0;   // and towards it
};

// Of the fabric's links that a step fills, by switch and kind; so many names at most.
inline constexpr std::size_t kMostSwitchesShown = 60;
std::vector<SwitchLoad> switch_loads(const Evaluated& evaluated, const Cluster& cluster,
                                     collective::CostCache& cache);

}  // namespace syncline::measure
