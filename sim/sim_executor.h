// The simulation: a plan on SimGrid's fluid network, with every collective sharing every link that
// it really crosses. Slower than the model and closer to the machine: per-rank stragglers,
// concurrent collectives on different tiers, oversubscribed switches.
#pragma once

#include <memory>

#include "core/run/executor.h"

namespace syncline::sim {

// SimGrid allows one engine a process, so each run happens in a child process of its own; a child
// that fails ends in a MachineError here.
std::unique_ptr<run::Executor> make_sim_executor(const run::ExecutorSettings& settings);

}  // namespace syncline::sim
