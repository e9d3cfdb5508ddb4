// Which algorithm NCCL is to take for which collective, where a strategy names it: as a setting of
// NCCL where that says it, else as a table for the tuner plugin (backend_nccl/tuner).
#pragma once

#include <string>

#include "core/scenario/scenario.h"

namespace syncline::dialect {

// Lines of the plugin's table for a strategy on this workload and cluster; empty where NCCL chooses
// everything by itself, or the cluster's library is not NCCL.
std::string nccl_table(const Strategy& strategy, const Workload& workload, const Cluster& cluster);

// The variable that makes NCCL do the same, "NCCL_ALGO=allreduce:tree;reduce:ring" (the grammar of
// NCCL 2.24); empty where one collective runs by different algorithms on different communicators,
// which only the table says, and where nothing is to be set.
std::string nccl_setting(const Strategy& strategy, const Workload& workload,
                         const Cluster& cluster);

}  // namespace syncline::dialect
