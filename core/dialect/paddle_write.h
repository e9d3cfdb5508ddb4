// A strategy as Paddle's DistributedStrategy: the configurations worth trying.
#pragma once

#include <vector>

#include "core/dialect/changes.h"
#include "core/dialect/dialect.h"

namespace syncline::dialect {

std::vector<Json> suggest_paddle(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                                 const Workload& workload, const Cluster& cluster);

// The part of a configuration that decides how the strategy trains, gradient compression and
// parameter averaging; empty where it exchanges every gradient as it is.
Json paddle_training_of(const Strategy& strategy);

// What is worth trying in Paddle's DistributedStrategy: single changes, and whole configurations.

Changes paddle_changes(const Json& config, const Cluster& cluster);
Json paddle_defaults();
std::vector<Json> paddle_candidates(const Strategy& winner, const Workload& workload,
                                    const Cluster& cluster, const Partitions& partitions);

}  // namespace syncline::dialect
