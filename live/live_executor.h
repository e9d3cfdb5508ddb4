// An executor on real machines, and what its backends share: this process is one rank of many.
// Outcome: the timeline of all
// ranks on rank 0's clock, on every rank alike; gradients and bytes sent of this rank only (the
// others' places are empty).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "core/executor.h"
#include "core/plan.h"
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
  // Returns whether another rank computes on this one's device: then its times are not a device's
  // own.
  virtual bool shares_device() const { return false; }
};

// A backend's factory; workload and channel must outlive the executor. Throws MachineError where
// the program was built without it or the machine has none.
using LiveExecutorFactory =
    std::function<std::unique_ptr<LiveExecutor>(const Workload&, ControlChannel&)>;

// Carries out one operation, which could begin at `ready`: when the last of what it waits for had
// ended. Gives when it ended, which may lie in the past by a timer's lateness: what follows is then
// reckoned from there, so that lateness does not add up.
using OpWork = std::function<Seconds(plan::OpId op, int period, Seconds ready)>;

// Returns a plan's operations in real time on one rank: a thread a stream, each operation begun
// once what it waits for is done. Gives the spans of `rank`, in order of `begin` on each stream;
// times as ControlChannel::now(). The first exception of any operation ends all streams at their
// next operation and is thrown here.
std::vector<run::Span> run_stream_threads(const plan::Plan& plan, int periods, int rank,
                                          const OpWork& work);

// Returns the timelines of all ranks as one, on rank 0's clock: everyone's spans with times since
// the first operation began, the same on every rank. What the clock drifted between its two
// measurements, where that is more than they err by, is taken to have come evenly.
run::Timeline exchange_timelines(ControlChannel& channel, std::vector<run::Span> own,
                                 const plan::Plan& plan, int periods, const ClockOffset& before,
                                 const ClockOffset& after);

// Returns the most by which times of two ranks may be off against each other: the errors of the two
// measurements, and what the clock drifted between them.
Seconds worst_clock_error(ControlChannel& channel, const ClockOffset& before,
                          const ClockOffset& after);

}  // namespace syncline::live
