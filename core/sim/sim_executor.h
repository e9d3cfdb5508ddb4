// The simulation: a plan on SimGrid's fluid network, with every collective sharing every link that
// it really crosses. Slower than the model and closer to the machine: per-rank stragglers,
// concurrent collectives on different tiers, oversubscribed switches.
#pragma once

#include <memory>

#include "core/executor.h"

namespace syncline::sim {

// SimGrid allows one engine a process, so each run happens in a child process of its own; a child
// that fails ends in a MachineError here.
std::unique_ptr<run::Executor> make_sim_executor(const run::ExecutorSettings& settings);

// A plan in simulated time, inside the process that owns the engine.

// Repeats the plan `periods` times. Ranks with a jitter of their own have compute streams of their
// own; the others share one. A collective sets out when its slowest rank is there. The jobs beside
// this one begin with it, each at its first period, and end with it.
run::Outcome simulate(const plan::Plan& plan, const run::ExecutorSettings& settings, int periods);

}  // namespace syncline::sim
