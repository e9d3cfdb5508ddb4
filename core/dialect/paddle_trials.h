// What is worth trying in Paddle's DistributedStrategy: single changes, and whole configurations.
#pragma once

#include <vector>

#include "core/dialect/changes.h"

namespace syncline::dialect {

Changes paddle_changes(const Json& config, const Cluster& cluster);
Json paddle_defaults();
std::vector<Json> paddle_candidates(const Strategy& winner, const Workload& workload,
                                    const Cluster& cluster, const Partitions& partitions);

}  // namespace syncline::dialect
