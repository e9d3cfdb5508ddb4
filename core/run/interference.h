// Interference: the mutual slowdown of computation and collectives, as operations of a plan.
#pragma once

#include "core/cluster.h"
#include "core/cost.h"
#include "core/plan.h"

namespace syncline::run {

// Returns the plan as it runs on this device: with Busy operations of kSums and kInterference, each
// after the operation it lengthens; executors of time run it like any other. Unchanged without
// interference.
//
// A collective that begins during the backward pass, or the next step's forward pass, first waits
// overlap.delay, or until the pass ends; computation is not slowed during that wait. It takes
// overlap.collective_slowdown longer for as long as the pass goes on, and the computation loses its
// share of the time that both run. Streams are assumed not to share links: sharing makes each
// transfer longer and leaves fewer under way, so that the computation loses the same in all.
// Sums in software (Device::sums) take the processor while a collective's bytes flow.
plan::Plan with_interference(plan::Plan plan, const Device& device, collective::CostCache& cache);

// Returns the extra time of a collective for sums in software, without computation.
Seconds sums_beyond(const collective::Collective& collective, const Device& device, Seconds wire);

}  // namespace syncline::run
