// The simulation: a plan on SimGrid's fluid network; every collective shares every link that it
// crosses. Slower than the model and closer to the machine: per-rank stragglers, concurrent
// collectives on different tiers, oversubscribed switches.
#pragma once

#include <memory>

#include "core/executor.h"

namespace syncline::sim {

// Returns the simulation. SimGrid allows one engine per process, so each run is in a child process
// of its own; if a child fails, a MachineError is thrown here.
std::unique_ptr<run::Executor> make_sim_executor(const run::ExecutorSettings& settings);

// A plan in simulated time, inside the process that owns the engine.

// Repeats the plan `periods` times. Ranks with their own jitter have their own compute streams; the
// others share one. A collective begins when its slowest rank is ready. The other jobs begin with
// this one, each at its first period, and end with it.
run::Outcome simulate(const plan::Plan& plan, const run::ExecutorSettings& settings, int periods);

}  // namespace syncline::sim
