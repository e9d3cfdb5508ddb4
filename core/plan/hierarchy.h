// Hierarchy: one logical all-reduce as the collectives that carry it out.
//   flat     one all-reduce among all ranks
//   leaders  reduce (or, as Paddle's documents have it, all-reduce) inside each group; all-reduce
//            among the leaders; broadcast inside each group
//   sharded  reduce-scatter inside each group; all-reduce of each shard across the groups;
//            all-gather inside each group
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/cluster.h"
#include "core/scenario/strategy.h"

namespace syncline::plan {

// Collectives in order, for a payload of `elements` units of `unit` bytes; groups of one rank have
// nothing to do and are left out.
std::vector<collective::Collective> all_reduce_by(const Strategy& strategy, const Cluster& cluster,
                                                  std::int64_t elements, Bytes unit, int bucket);

// An all-gather of `elements` units in total, always flat: Paddle's sparse exchange ignores the
// hierarchy. The strategy's algorithm where it gathers, else ring.
collective::Collective all_gather_by(const Strategy& strategy, const Cluster& cluster,
                                     std::int64_t elements, Bytes unit, int bucket);

}  // namespace syncline::plan
