// The simulation: a plan on SimGrid's fluid network, with every collective sharing every link that
// it really crosses. Slower than the model and closer to the machine: per-rank stragglers,
// concurrent collectives on different tiers, oversubscribed switches.
//
// Two grains (Simulation::grain): `step` moves every message of every round and lets each rank go
// on as soon as its own messages are done; `merged` simulates rounds that load the links alike
// as one flow an edge, after the latencies that they stand for. With `fold`, links that carry the
// same kinds of flows are simulated once (see fold.h).
#pragma once

#include <memory>

#include "core/run/executor.h"

namespace syncline::sim {

// SimGrid allows one engine a process, so each run happens in a child process of its own; a child
// that fails ends in a MachineError here.
std::unique_ptr<run::Executor> make_sim_executor(const run::ExecutorSettings& settings);

}  // namespace syncline::sim
