// Ends are computed, not accumulated: a span that follows another without a wait begins at that
// one's intended end. Otherwise the microseconds between launches would make a hundred layers a
// millisecond longer. If it comes more than kLaunchGap later, the host was late, and it begins at
// once.
//
// The clock is %globaltimer: nanoseconds, advancing in steps of at most a microsecond or so, also
// while the GPU works for another process.
#include "kernels/kernels.h"

#include "kernels/launch.h"
#if !defined(__CUDACC__)
#include <chrono>
#include <thread>
#endif

namespace syncline::kernels {
namespace {

#if defined(__CUDACC__)
__device__ std::uint64_t now() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
  return time;
}
__device__ void nap(unsigned nanoseconds) { __nanosleep(nanoseconds); }
__device__ bool first_thread() { return threadIdx.x == 0; }
#else
std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
void nap(unsigned nanoseconds) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
}
bool first_thread() { return true; }
#endif

// Begins a span in one thread; the other threads of the block end at once.
__global__ void timer_begin_kernel(TimerState* timer, bool follows) {
  if (!first_thread()) return;
  const std::uint64_t time = now();
  const bool on_time = time >= timer->end && time - timer->end < kLaunchGap;
  timer->begin = follows && on_time ? timer->end : time;
}

__global__ void timer_end_kernel(TimerState* timer, std::uint64_t nanoseconds) {
  if (!first_thread()) return;
  const std::uint64_t end = timer->begin + nanoseconds;
  constexpr std::uint64_t kNap = 1000;
  for (std::uint64_t time = now(); time < end; time = now()) {
    if (end - time > 4 * kNap) nap(kNap);
  }
  // If work inside the span takes longer than the span, the end is later.
  const std::uint64_t time = now();
  timer->end = time - end < kLaunchGap ? end : time;
}

}  // namespace

Status timer_begin(TimerState* timer, bool follows, cudaStream_t stream) {
  return launch("timer_begin_kernel", timer_begin_kernel, {}, stream, timer, follows);
}

Status timer_end(TimerState* timer, std::int64_t nanoseconds, cudaStream_t stream) {
  return launch("timer_end_kernel", timer_end_kernel, {}, stream, timer,
                static_cast<std::uint64_t>(nanoseconds));
}

}  // namespace syncline::kernels
