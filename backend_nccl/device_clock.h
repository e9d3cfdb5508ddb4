// Times of CUDA events on this host's clock (ControlChannel::now). Between two events CUDA gives
// the time that passed; an anchor is an event that the host has waited for, with the clock read
// just before it was recorded and just after it had passed. Times between two anchors are reckoned
// from both.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "backend_nccl/device.h"
#include "core/units.h"

namespace syncline::nccl_backend {

struct ClockAnchor {
  CudaEvent event{true};
  Seconds host = 0;
  Seconds error = 0;  // at most, either way: half of the time between the two readings
};

// The best of some dozens. Nothing else may be under way on the stream.
ClockAnchor anchor_on(cudaStream_t stream);

class DeviceClock {
 public:
  DeviceClock(const ClockAnchor& begin, const ClockAnchor& end, Seconds between);
  // The host's time of a moment so long after the first anchor.
  Seconds on_host(Seconds since_begin) const { return host_ + since_begin * rate_; }

 private:
  Seconds host_;
  double rate_;
};

}  // namespace syncline::nccl_backend
