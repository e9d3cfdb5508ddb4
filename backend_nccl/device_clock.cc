#include "backend_nccl/device_clock.h"

#include <utility>

#include "live/control_channel.h"

namespace syncline::nccl_backend {

ClockAnchor anchor_on(cudaStream_t stream) {
  constexpr int kTries = 30;
  std::vector<ClockAnchor> tries(kTries);
  std::size_t best = 0;
  for (std::size_t i = 0; i < tries.size(); ++i) {
    ClockAnchor& anchor = tries[i];
    const Seconds before = live::ControlChannel::now();
    anchor.event.record(stream);
    check_cuda(cudaEventSynchronize(anchor.event.get()), "cudaEventSynchronize");
    const Seconds after = live::ControlChannel::now();
    anchor.host = (before + after) / 2;
    anchor.error = (after - before) / 2;
    if (anchor.error < tries[best].error) best = i;
  }
  return std::move(tries[best]);
}

DeviceClock::DeviceClock(const ClockAnchor& begin, const ClockAnchor& end, Seconds between)
    : host_(begin.host), rate_(between > 0 ? (end.host - begin.host) / between : 1) {}

}  // namespace syncline::nccl_backend
