// The links between nodes: which holds collectives up, what would cool it, and how busy all are.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/measure/evaluate_strategy.h"
#include "core/measure/report.h"

namespace syncline::measure {

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
