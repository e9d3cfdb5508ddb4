// The best fusion for one communication stream, by dynamic programming: both a strategy (explicit
// buckets) and the yardstick for every other rule.
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
