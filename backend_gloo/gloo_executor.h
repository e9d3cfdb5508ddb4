// The Gloo executor: this process is one rank of many and carries the plan out for real, over
// sockets: gradients move, encodings are encoded, streams run side by side. Computation is stood in
// for by a timer of the plan's durations, during which backward passes write their gradients.
//
// Outcome: the timeline of all ranks on rank 0's clock, on every rank alike; gradients and bytes
// sent of this rank only (the others' places are empty). Where the program is built without Gloo,
// the factory throws MachineError.
#pragma once

#include <memory>

#include "live/live_executor.h"
#include "live/meeting.h"

namespace syncline {

// `input` of run() holds this rank's gradients in its place; the others' may be empty. The same
// input is exchanged in every period. `workload` and `meeting` must outlive it.
std::unique_ptr<LiveExecutor> make_gloo_executor(const Workload& workload, Meeting& meeting);

}  // namespace syncline
