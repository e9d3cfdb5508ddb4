// Time passing on a stream: one thread that looks at the GPU's clock until it is late enough. It
// stands in for computation whose duration is known and takes nothing from what runs beside it, no
// multiprocessor worth mentioning and no memory traffic.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace syncline::kernels {

// In device memory, one for each stream; zeroed before its first use.
struct TimerState {
  std::uint64_t begin;  // of the span under way
  std::uint64_t end;    // that was meant for the last one
};

constexpr std::uint64_t kLaunchGap = 20000;  // nanoseconds

// A span begins; other work may follow on the stream before it ends. `follows`: nothing has been
// done on the stream, and nothing waited for, since the timer's last span.
Status timer_begin(TimerState* timer, bool follows, cudaStream_t stream);
// Lets the span that began last take `nanoseconds` in all. Work between the two counts in.
Status timer_end(TimerState* timer, std::int64_t nanoseconds, cudaStream_t stream);

}  // namespace syncline::kernels
