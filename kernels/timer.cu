#include "kernels/cuda_status.cuh"
#include "kernels/timer.h"

namespace syncline::kernels {
namespace {

__device__ std::uint64_t now() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
  return time;
}

__global__ void timer_begin_kernel(TimerState* timer, bool follows) {
  const std::uint64_t time = now();
  const bool on_time = time >= timer->end && time - timer->end < kLaunchGap;
  timer->begin = follows && on_time ? timer->end : time;
}

__global__ void timer_end_kernel(TimerState* timer, std::uint64_t nanoseconds) {
  const std::uint64_t end = timer->begin + nanoseconds;
  constexpr std::uint64_t kNap = 1000;
  for (std::uint64_t time = now(); time < end; time = now()) {
    if (end - time > 4 * kNap) __nanosleep(kNap);
  }
  // Work inside the span that took longer than all of it ends it later.
  const std::uint64_t time = now();
  timer->end = time - end < kLaunchGap ? end : time;
}

}  // namespace

Status timer_begin(TimerState* timer, bool follows, cudaStream_t stream) {
  if (timer == nullptr) return failure("timer_begin: the timer is a null pointer");
  timer_begin_kernel<<<1, 1, 0, stream>>>(timer, follows);
  return launch_status("timer_begin");
}

Status timer_end(TimerState* timer, std::int64_t nanoseconds, cudaStream_t stream) {
  if (timer == nullptr) return failure("timer_end: the timer is a null pointer");
  if (nanoseconds < 0) return failure("timer_end: a negative time");
  timer_end_kernel<<<1, 1, 0, stream>>>(timer, static_cast<std::uint64_t>(nanoseconds));
  return launch_status("timer_end");
}

}  // namespace syncline::kernels
