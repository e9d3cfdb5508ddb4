// Lower bound on the time of a collective by the bytes that a cluster's ports must carry, for any
// algorithm: no unmeasured cost may lie below.
#pragma once

#include "core/base/units.h"
#include "core/cluster.h"
#include "core/collective/collective.h"

namespace syncline::collective {

// Returns seconds. A collective that NCCL chose moves data like NCCL's algorithm (ring, switch),
// every other as messages between ranks. 0 for groups of one and without tiers. Throws nothing.
Seconds wire_floor(const Cluster& cluster, const Collective& collective);

// Returns wire_floor() per byte of the payload. Takes time proportional to the number of ranks.
double wire_seconds_per_byte(const Cluster& cluster, const Collective& collective);

}  // namespace syncline::collective
