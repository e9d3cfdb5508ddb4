// A plan's list handed to the GPU by one thread, period after period, and waited for: streams,
// events and the times at which they passed (backend_nccl/launch_order.h says why in this order).
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

// Times of CUDA events on this host's clock (ControlChannel::now). Between two events CUDA gives
// the time that passed; an anchor is an event that the host has waited for, with the clock read
// just before it was recorded and just after it had passed. Times between two anchors are reckoned
// from both.

struct ClockAnchor {
  CudaEvent event{true};
  Seconds host = 0;
  Seconds error = 0;  // at most, either way: half of the time between the two readings
};

// Returns the best of some dozens. Nothing else may be under way on the stream.
ClockAnchor anchor_on(cudaStream_t stream);

class DeviceClock {
 public:
  DeviceClock(const ClockAnchor& begin, const ClockAnchor& end, Seconds between);
  // Returns the host's time of a moment so long after the first anchor.
  Seconds on_host(Seconds since_begin) const { return host_ + since_begin * rate_; }

 private:
  Seconds host_;
  double rate_;
};

// Launches what one operation does on its stream.
using LaunchWork = std::function<void(const OrderedLaunch& launch, cudaStream_t stream)>;
// How many commands that puts on the stream, about; the GPU's queues are not endless.
using LaunchCost = std::function<int(const OrderedLaunch& launch)>;
// An operation for people, for messages.
using LaunchName = std::function<std::string(plan::OpId op)>;

class StreamWalk {
 public:
  // `plan` and all others must outlive it. `longest`: of the plan's operations, as it says.
  StreamWalk(const plan::Plan& plan, const LaunchOrder& order, const live::ControlChannel& channel,
             const Communicators& communicators, LaunchWork work, LaunchCost cost, LaunchName name,
             int periods);

  cudaStream_t stream(plan::StreamId id) const {
    return streams_[static_cast<std::size_t>(id)].get();
  }

  // Launches `periods` repetitions of the list (at most the constructor's) and waits for them.
  void run(int periods);
  // The same as one CUDA graph: captured by the first call, launched by the second.
  void capture(int periods);
  void run_captured();
  // When each operation of the last run began and ended. `begin` and `end` are anchors on stream 0
  // from before and after it.
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
    std::size_t launch = 0;  // of all periods
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
  std::vector<Times> times_;          // by period and launch
  std::vector<CudaEvent> signals_;    // by parity of the period and launch
  std::vector<CudaEvent> crossings_;  // by stream: its fork or join
  CudaEvent done_{false};
  std::deque<Outstanding> outstanding_;
  int commands_ = 0;
  int periods_ = 0;  // of the last run
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace syncline::nccl_backend
