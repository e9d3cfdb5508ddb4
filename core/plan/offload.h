// Offload to the host (ZeRO-Offload, Ren et al. 2021). Of the optimizer: gradients go down a
// device's own link to the host's memory, all processors of a node update the parameters of its
// devices, and these come up again. Of parameters: shards come up for each gather. All of this is
// taken to follow the backward pass: no pass hides it.
#pragma once

#include <optional>

#include "core/cluster.h"
#include "core/job.h"
#include "core/strategy.h"

namespace syncline::plan {

// Returns the workload with all times of a step's offload in its update; nullopt without one.
std::optional<Workload> with_offload(const Workload& workload, const Cluster& cluster,
                                     const Strategy& strategy);

}  // namespace syncline::plan
