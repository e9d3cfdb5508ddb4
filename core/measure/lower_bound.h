// What no fusion and no number of streams can beat: the step time that latency, links and
// computation enforce on gradients that cannot be sent before they are ready.
#pragma once

#include "core/collective/price.h"
#include "core/plan/plan.h"
#include "core/scenario/workload.h"

namespace syncline::measure {

// The greatest of
//   the computation of a step, with its copies into buckets and the waiting for the host,
//   ready_i + latency of its exchange + its own transfer, and
//   ready_i + first latency + link time of all gradients that are ready from then on,
// over the gradients i, plus the update that must follow. Where an exchange has one stage (a ring),
// its first latency is all of its latency, and this is the bound of the fusion literature: max over
// i of (ready_i + latency + sum of later transfers).
//
// Where steps overlap, ready_i counts from the forward pass of gradient i's own layer: from there
// to the next step's forward pass of that layer its own computation, and then the exchange of all
// that became ready since and is needed by then, must pass, so that a step takes at least as long.
// The computation of a step bounds it as before.
//
// Valid for this plan at any number of streams, and for other fusions of it whose collectives have
// the same latencies and rates: same algorithm, hierarchy and codec (pipelined algorithms change
// them a little with the size of a bucket). Messages are those of the merged grain, which puts a
// stage's latency before its transfer.
Seconds lower_bound(const plan::Plan& plan, const Workload& workload, collective::PriceBook& book);

}  // namespace syncline::measure
