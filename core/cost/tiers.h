// From one network to another of the same nodes: what a forced algorithm costs, in units of what
// the network carries, stays what it is when the network changes.
#pragma once

#include <optional>
#include <vector>

#include "core/cost/law.h"
#include "core/cost/measured_table.h"

namespace syncline::cost {

// `factor` is time * bandwidth / bytes: 2 for an ideal pipelined tree, 4.1 for the double tree of
// NCCL 2.4 on PCIe nodes.
inline Seconds time_by_factor(double factor, double bytes, BytesPerSecond bandwidth) {
  return factor * bytes / bandwidth;
}

// The factor of a law's forced trees on more than two nodes (at two a tree sends half as much),
// over the sizes of their tables, evenly spread; their rate is what the other tables between nodes
// show. Empty where the law holds no such tree, or nothing but trees.
std::optional<double> tree_factor(const MeasuredLaw& law);

}  // namespace syncline::cost
