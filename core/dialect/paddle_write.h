// A strategy as Paddle's DistributedStrategy: the configurations worth trying.
#pragma once

#include <vector>

#include "core/dialect/dialect.h"

namespace syncline::dialect {

std::vector<Json> suggest_paddle(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                                 const Workload& workload, const Cluster& cluster);

}  // namespace syncline::dialect
