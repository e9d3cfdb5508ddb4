// A strategy as Paddle's DistributedStrategy: the configurations worth trying.
#pragma once

#include <vector>

#include "core/dialect/dialect.h"

namespace syncline::dialect {

std::vector<Json> suggest_paddle(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                                 const Workload& workload, const Cluster& cluster);

// The part of a configuration that decides how the strategy trains, gradient compression and
// parameter averaging; empty where it exchanges every gradient as it is.
Json paddle_training_of(const Strategy& strategy);

}  // namespace syncline::dialect
