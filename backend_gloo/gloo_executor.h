// The Gloo executor: this process is one rank of many and carries the plan out for real, over
// sockets: gradients move, encodings are encoded, streams run side by side. Computation is stood in
// for by a timer of the plan's durations, during which backward passes write their gradients.
#pragma once

#include <memory>

#include "live/live_executor.h"

namespace syncline::gloo_backend {

// Where the program is built without Gloo it throws MachineError.
std::unique_ptr<live::LiveExecutor> make_gloo_executor(const Workload& workload,
                                                       live::ControlChannel& channel);

}  // namespace syncline::gloo_backend
