// Sums that a collective library takes in software: Gloo has no instructions for 16 bits. They are
// work of the processor that computes, and go on while the bytes flow.
#pragma once

#include "core/plan/plan.h"
#include "core/scenario/cluster.h"

namespace syncline::plan {

// Of one rank; no work where a collective adds nothing up, in wider formats, or at no cost.
Sums sums_of(const collective::Collective& collective, const Device& device);

// What they take beyond the time of the collective's bytes, which need the processor too. Beside
// computation, which leaves half of the processor to them, they are so many `times` as long.
Seconds beyond(const Sums& sums, Seconds wire, double times = 1);

}  // namespace syncline::plan
