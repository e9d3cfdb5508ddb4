// The best fusion for one communication stream, by dynamic programming: both a strategy (explicit
// buckets) and the yardstick for every other rule.
//
// Gradients 0..L-1 become ready in this order. A bucket is a run of them, released when its last
// one is ready; buckets go one after the other over one stream. C[i], the earliest time at which
// the first i gradients can have been exchanged, follows from
//   C[0] = 0,   C[i] = min over j < i of max(C[j], ready[i-1]) + cost(j, i),
// because a prefix matters only through its finish. Exact for every cost of a run; with an affine
// one (latency + bytes * rate) no grouping that is not contiguous, and no other order, is better:
// moving a gradient from a later bucket to an earlier-released one never raises a suffix sum.
// Costs that depend on what other streams do are outside this page.
#pragma once

#include <functional>
#include <vector>

#include "core/units.h"

namespace syncline::tune {

// The time that one bucket of the gradients [first, end) keeps the stream.
using RunCost = std::function<Seconds(std::size_t first, std::size_t end)>;

struct FusionPlan {
  Seconds finish = 0;             // of the last bucket
  std::vector<std::size_t> ends;  // the last gradient of each bucket, in order
};

// The best contiguous buckets for any cost: O(L^2) calls of it, O(L) memory. `ready` does not fall.
// Of equal choices the longest bucket is taken.
FusionPlan best_fusion(const std::vector<Seconds>& ready, const RunCost& cost);

}  // namespace syncline::tune
