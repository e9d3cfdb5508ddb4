// Interference: the mutual slowdown of computation and collectives, as operations of a plan.
#pragma once

#include "core/cluster.h"
#include "core/cost.h"
#include "core/plan.h"

namespace syncline::run {

// Returns the plan with the slowdowns of this device as Busy operations, each next to the operation
// that it lengthens; executors of time run it like any other plan. Returns the plan unchanged
// without interference. interference.cc has an example.
//
// A collective that begins during the backward pass, or the next step's forward pass, first waits
// overlap.delay, or until the pass ends; computation is not slowed during that wait. Then both take
// longer while both run: the collective by overlap.collective_slowdown, the computation by
// overlap.slowdown. Streams are assumed not to share links: sharing makes each transfer longer and
// leaves fewer under way, so that the computation loses the same in all.
// Sums in software (Device::sums) take the processor while a collective's bytes flow.
plan::Plan with_interference(plan::Plan plan, const Device& device, collective::CostCache& cache);

// Returns the extra time of a collective for sums in software, without computation.
Seconds sums_beyond(const collective::Collective& collective, const Device& device, Seconds wire);

}  // namespace syncline::run
