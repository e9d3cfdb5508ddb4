// The Gloo executor: this process is one rank of many and carries the plan out over sockets.
// Gradients, encodings and concurrent streams are real. Computation is a timer of the plan's
// durations, during which backward passes write their gradients.
#pragma once

#include <memory>

#include "live/live_executor.h"

namespace syncline::gloo_backend {

// Returns the executor. Throws MachineError if the program was built without Gloo.
std::unique_ptr<live::LiveExecutor> make_gloo_executor(const Workload& workload,
                                                       live::ControlChannel& channel);

}  // namespace syncline::gloo_backend
