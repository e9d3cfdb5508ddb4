// The link between nodes that holds collectives up, and what would cool it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/measure/evaluate_strategy.h"

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

}  // namespace syncline::measure
