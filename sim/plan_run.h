// A plan in simulated time, inside the process that owns the engine.
#pragma once

#include "core/run/executor.h"

namespace syncline::sim {

// Repeats the plan `periods` times. Ranks with a jitter of their own have compute streams of their
// own; the others share one. A collective sets out when its slowest rank is there. The jobs beside
// this one begin with it, each at its first period, and end with it.
run::Outcome simulate(const plan::Plan& plan, const run::ExecutorSettings& settings, int periods);

}  // namespace syncline::sim
