// Evaluates jobs that share a fabric, in closed form. Each job has the bandwidth that the others
// leave of a link in the mean, but at least its max-min fair share while their messages are
// present. Steps and means depend on each other: a fixed point of a few rounds.
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

// Use of a link by one step of a job.
struct LinkUse {
  Seconds busy = 0;     // bytes / capacity
  Seconds present = 0;  // time with some of its messages on the link
  double messages = 0;  // messages at once, mean over the bytes
};

// Returns the use of each of the network's links. `cache`: costs of the plan's collectives.
std::vector<LinkUse> link_use(const plan::Plan& plan, const collective::Network& network,
                              collective::CostCache& cache);

// A strategy among the scenario's other jobs.
struct Together {
  Cluster cluster;                                 // links have the bandwidth that the others leave
  std::shared_ptr<const fabric::Topology> fabric;  // links have their full bandwidth
  FabricJobs fabric_jobs;
  std::shared_ptr<collective::CostCache> cache;  // costs on `cluster`
  std::vector<run::Beside> others;               // the other jobs, for an executor that runs them
  std::vector<std::vector<double>> bytes;        // per step, by job and link of the fabric
};

Together together(const Scenario& scenario, const Strategy& strategy);

// Returns the cluster with the bandwidth that the scenario's other jobs, if any, leave per link.
Cluster cluster_left(const Scenario& scenario, const Strategy& strategy);

// Returns the scenario without its other jobs, on the bandwidth that they leave while its baseline
// trains. Other strategies would change the others' steps, which this ignores.
Scenario beside_others(Scenario scenario);

// Fills in the hot links, for steps of the length in the company.
void find_hot_links(Together& together);

// Links between nodes: the one that slows collectives down, remedies, and the load of all.

struct HotLink {
  std::string name;   // "leaf3-spine0"
  std::string sort;   // "spine"
  Seconds busy = 0;   // time of a step's collectives alone on the link
  Seconds ports = 0;  // the same of the busiest port of a node or GPU
  // Changes with the predicted step, the shortest first; changes without a gain are left out.
  std::vector<std::pair<std::string, Seconds>> cooler;
};

// Returns the hot link of an evaluation; nullopt without a fabric, or if a port is as busy as any
// of its links. `cache`: costs in this scenario.
std::optional<HotLink> find_hot_link(const Evaluated& evaluated, const Scenario& scenario,
                                     const Strategy& strategy, collective::CostCache& cache);

// Most links of the fabric that hottest_links returns.
inline constexpr std::size_t kMaxLinksTraced = 4;
std::vector<LinkWork> hottest_links(const plan::Plan& plan, const Cluster& cluster,
                                    collective::CostCache& cache);

// The busiest link of a kind at a switch, or at neighbouring ones ("leaf0 to leaf3").
struct SwitchLoad {
  std::string name;
  std::string sort;
  Seconds out = 0;  // away from the switch: time of a step's collectives alone on the link
  Seconds in = 0;   // towards the switch
};

// Most names that switch_loads returns: the fabric's links with traffic, by switch and kind.
inline constexpr std::size_t kMaxSwitchesShown = 60;
std::vector<SwitchLoad> switch_loads(const Evaluated& evaluated, const Cluster& cluster,
                                     collective::CostCache& cache);

}  // namespace syncline::measure
