// The minimum step time that any fusion and any number of streams can reach.
#pragma once

#include <vector>

#include "core/cost.h"
#include "core/job.h"
#include "core/plan.h"

namespace syncline::measure {

// Returns a lower bound for any fusion and number of streams, as the mean over the phases. It walks
// the links for each bucket size, so call it only for printed results. At most `step_time`, the
// strategy's own: cost models of small payloads overstate the bound.
Seconds lower_bound_of(const Job& job, const Strategy& strategy, Seconds step_time,
                       collective::CostCache& cache);

// Returns the time that each kind of link works per byte of a payload; `share` of it has this cost.
std::vector<double> link_times(const collective::CollectiveCost& cost, double share = 1);

// Returns the minimum time of a step: no gradient is sent before it is ready, and each link carries
// all bytes that cross it. bound.cc has an example. It is the maximum, over the gradients i, of
//   the computation of a step, with its copies into buckets and its waits for the host;
//   ready_i + latency of its exchange + its own transfer + update;
//   ready_i + first latency + link time of all gradients that are ready from then on + update.
// The update counts only if it must follow. The first latency is one message's. In an exchange's
// own latency and transfer, ranks run ahead of each other as far as messages let them
// (collective/critical_path.h). Pipelines have the fewest rounds and the cheapest bytes of any
// payload.
//
// If steps overlap, ready_i counts from the forward pass of gradient i's own layer. A step then
// takes at least the time from there to the next step's forward pass of that layer. In between are
// its own computation, then the exchange of all gradients that became ready and are needed by then.
//
// Valid for this plan at any number of streams, and for other fusions of it with the same
// algorithm, hierarchy and codec; in the model and in both grains of the simulation.
Seconds lower_bound(const plan::Plan& plan, const Workload& workload, collective::CostCache& cache);

}  // namespace syncline::measure
