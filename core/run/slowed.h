// How long exchanges and the computation beside them slow each other down, which only the
// exchanges' prices tell.
#pragma once

#include "core/collective/price.h"
#include "core/plan/plan.h"

namespace syncline::run {

// Whether a plan holds such work.
bool slows(const plan::Plan& plan);

// The plan with the seconds of plan::Slowed filled in, for one period by itself, or one behind
// another like it where steps begin beside the exchanges of those before. Streams are taken
// not to share links: those that do take longer and are fewer at a time, so that computation loses
// the same in all. An exchange that begins beside the backward pass waits its `delay` first, no
// longer than the pass goes on, which loses nothing meanwhile. Then it takes `share` longer for as
// long as the pass goes on beside it, and the computation loses its `share` of the time that they
// run. plan::Slowed::rest tells how much of the pass is left, or, below zero, how long it has gone
// on.
plan::Plan with_slowed(plan::Plan plan, collective::PriceBook& book);

}  // namespace syncline::run
