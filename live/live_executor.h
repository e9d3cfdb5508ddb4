// An executor on real machines, and functions that its backends share: this process is one rank of
// many. Outcome, the same on every rank: the timeline of all ranks on rank 0's clock. Gradients and
// bytes sent are only this rank's; the places of other ranks are empty.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "core/executor.h"
#include "core/plan.h"
#include "live/control_channel.h"

namespace syncline::live {

// Runs plans on all ranks. `input` of run() holds this rank's gradients at its index; the others
// may be empty. The same input is exchanged in every period.
class LiveExecutor : public run::Executor {
 public:
  // Returns an upper limit of the error of all ranks' times in the last run.
  virtual Seconds clock_error() const = 0;
  // Returns the transport of the bytes, for the report: "gloo over TCP".
  virtual std::string hardware() const = 0;
  // Returns true if another rank computes on this one's device: then its times are not a device's
  // own.
  virtual bool shares_device() const { return false; }
};

// Makes a backend's executor. Throws MachineError if the program was built without the backend or
// the machine has none. Requires that workload and channel outlive the executor.
using LiveExecutorFactory =
    std::function<std::unique_ptr<LiveExecutor>(const Workload&, ControlChannel&)>;

// Runs one operation, which could begin at `ready`, the end of its last dependency. Returns its
// end. The end may lie in the past by a timer's lateness: later operations count from there, so
// that lateness does not add up.
using OpWork = std::function<Seconds(plan::OpId op, int period, Seconds ready)>;

// Runs a plan's operations in real time on one rank: a thread per stream, each operation after its
// dependencies. Returns the spans of `rank`, in order of `begin` on each stream, with times as in
// ControlChannel::now(). The first exception ends all streams at their next operation and is
// thrown.
std::vector<run::Span> run_stream_threads(const plan::Plan& plan, int periods, int rank,
                                          const OpWork& work);

// Returns the timelines of all ranks as one, on rank 0's clock, the same on every rank. Times count
// from the begin of the first operation. A clock's drift between its two measurements, if it
// exceeds their errors, is spread evenly.
run::Timeline exchange_timelines(ControlChannel& channel, std::vector<run::Span> own,
                                 const plan::Plan& plan, int periods, const ClockOffset& before,
                                 const ClockOffset& after);

// Returns the largest error of a rank's times: the error of the clock measurements plus the drift
// between them.
Seconds worst_clock_error(ControlChannel& channel, const ClockOffset& before,
                          const ClockOffset& after);

}  // namespace syncline::live
