// The Gloo executor: this process is one rank of many and carries the plan out for real, over
// sockets: gradients move, encodings are encoded, streams run side by side. Computation is stood in
// for by a timer of the plan's durations, during which backward passes write their gradients.
//
// Outcome: the timeline of all ranks on rank 0's clock, on every rank alike; gradients and bytes
// sent of this rank only (the others' places are empty). Where the program is built without Gloo,
// the factory throws MachineError.
#pragma once

#include <memory>

#include "core/run/executor.h"
#include "live/meeting.h"

namespace syncline {

// A live executor knows besides how well the ranks' clocks agree.
class LiveExecutor : public Executor {
 public:
  // Of the last run: no rank's times are further off than this.
  virtual Seconds clock_error() const = 0;
  // The library and its version, the transport: for the report.
  virtual std::string hardware() const = 0;
};

// `input` of run() holds this rank's gradients in its place; the others' may be empty. The same
// input is exchanged in every period. `workload` and `meeting` must outlive it.
std::unique_ptr<LiveExecutor> make_gloo_executor(const Workload& workload, Meeting& meeting);

}  // namespace syncline
