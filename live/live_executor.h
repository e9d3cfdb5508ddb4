// An executor on real machines: this process is one rank of many. Outcome: the timeline of all
// ranks on rank 0's clock, on every rank alike; gradients and bytes sent of this rank only (the
// others' places are empty).
#pragma once

#include <functional>
#include <memory>

#include "core/run/executor.h"
#include "live/control_channel.h"

namespace syncline::live {

// `input` of run() holds this rank's gradients in its place; the others' may be empty. The same
// input is exchanged in every period.
class LiveExecutor : public run::Executor {
 public:
  // Of the last run: no rank's times are further off than this.
  virtual Seconds clock_error() const = 0;
  // What moved the bytes, for the report: "gloo over TCP".
  virtual std::string hardware() const = 0;
};

// A backend's factory; workload and channel must outlive the executor. Throws MachineError where
// the program was built without it or the machine has none.
using LiveExecutorFactory =
    std::function<std::unique_ptr<LiveExecutor>(const Workload&, ControlChannel&)>;

}  // namespace syncline::live
