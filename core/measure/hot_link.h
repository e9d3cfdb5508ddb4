// The link between nodes that holds collectives up, and what would cool it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/measure/price_strategy.h"

namespace syncline::measure {

struct HotLink {
  std::string name;   // "leaf3-spine0"
  std::string sort;   // "spine"
  Seconds busy = 0;   // of a step's collectives, were they alone on it
  Seconds ports = 0;  // the busiest port of a node or GPU, likewise
  // Each with the step that would be predicted, the shortest first; what gains nothing is left out.
  std::vector<std::pair<std::string, Seconds>> cooler;
};

// Of what was priced in this scenario, whose prices are in the book. Nothing where a port is as
// busy as any link of the fabric.
std::optional<HotLink> hot_link_of(const Priced& priced, const Scenario& scenario,
                                   const Strategy& strategy, collective::PriceBook& book);

}  // namespace syncline::measure
