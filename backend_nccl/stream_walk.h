// Launches a plan's list on the GPU from one thread, period after period, and waits for it:
// streams, events and their times (backend_nccl/launch_order.h explains the order).
#pragma once

#include <cuda_runtime.h>

#include <deque>
#include <functional>
#include <vector>

#include "backend_nccl/communicators.h"
#include "backend_nccl/device.h"
#include "backend_nccl/launch_order.h"
#include "core/base/units.h"
#include "core/executor.h"

namespace syncline::nccl_backend {

// Times of CUDA events on this host's clock (ControlChannel::now). CUDA gives only the time between
// two events. An anchor is an event that the host has waited for; the host reads its clock just
// before it records the event and just after the event passed. Other times are interpolated between
// two anchors.

struct ClockAnchor {
  CudaEvent event{true};
  Seconds host = 0;
  Seconds error = 0;  // largest error either way: half of the time between the two readings
};

// Returns the most exact of some dozens of anchors. Requires an otherwise idle stream.
ClockAnchor measure_clock_anchor(cudaStream_t stream);

class DeviceClock {
 public:
  DeviceClock(const ClockAnchor& begin, const ClockAnchor& end, Seconds between);
  // Returns the host's time of a moment `since_begin` after the first anchor.
  Seconds on_host(Seconds since_begin) const { return host_ + since_begin * rate_; }

 private:
  Seconds host_;
  double rate_;
};

// Launches the work of one operation on its stream.
using LaunchWork = std::function<void(const OrderedLaunch& launch, cudaStream_t stream)>;
// Returns roughly the number of commands that a launch puts on the stream; GPU queues are finite.
using LaunchCost = std::function<int(const OrderedLaunch& launch)>;
// Returns an operation's description for messages.
using LaunchName = std::function<std::string(plan::OpId op)>;

class StreamWalk {
 public:
  // Requires that all arguments outlive it. `periods`: the most that run() or capture() repeats.
  StreamWalk(const plan::Plan& plan, const LaunchOrder& order, const live::ControlChannel& channel,
             const Communicators& communicators, LaunchWork work, LaunchCost cost, LaunchName name,
             int periods);

  cudaStream_t stream(plan::StreamId id) const {
    return streams_[static_cast<std::size_t>(id)].get();
  }

  // Launches `periods` repetitions of the list (at most the constructor's) and waits for them.
  void run(int periods);
  // Runs the list as one CUDA graph: capture() builds it, run_captured() launches it.
  void capture(int periods);
  void run_captured();
  // Returns the begin and end of each operation in the last run. `begin` and `end` are anchors on
  // stream 0 from before and after the run.
  std::vector<run::Span> spans(int rank, const ClockAnchor& begin, const ClockAnchor& end) const;

  ~StreamWalk();
  StreamWalk(const StreamWalk&) = delete;
  StreamWalk& operator=(const StreamWalk&) = delete;

 private:
  struct Times {
    CudaEvent begin{true};
    CudaEvent end{true};
  };
  struct Outstanding {
    std::size_t launch = 0;  // index over all periods
    int commands = 0;
  };

  void walk(int periods, bool captured);
  void launch(int period, std::size_t place, bool captured);
  void record(const CudaEvent& event, cudaStream_t stream, bool captured) const;
  void fork();
  void join();
  void hold(int commands);
  void await();
  std::string describe(std::size_t launch) const;

  const plan::Plan& plan_;
  const LaunchOrder& order_;
  const live::ControlChannel& channel_;
  const Communicators& communicators_;
  const LaunchWork work_;
  const LaunchCost cost_;
  const LaunchName name_;
  std::chrono::milliseconds longest_{0};
  std::vector<CudaStream> streams_;
  std::vector<Times> times_;          // per period and launch
  std::vector<CudaEvent> signals_;    // per parity of the period and launch
  std::vector<CudaEvent> crossings_;  // per stream: its fork or join
  CudaEvent done_{false};
  std::deque<Outstanding> outstanding_;
  int commands_ = 0;
  int periods_ = 0;  // in the last run
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace syncline::nccl_backend
