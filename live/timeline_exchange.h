// The timelines of all ranks as one, on rank 0's clock.
#pragma once

#include <vector>

#include "core/run/timeline.h"
#include "live/control_channel.h"

namespace syncline::live {

// Everyone's spans with times since the first operation began, the same on every rank. What
// the clock drifted between its two measurements, where that is more than they err by, is taken to
// have come evenly.
run::Timeline exchange_timelines(ControlChannel& channel, std::vector<run::Span> own, int periods,
                                 const ClockOffset& before, const ClockOffset& after);

// The most by which times of two ranks may be off against each other: the errors of the two
// measurements, and what the clock drifted between them.
Seconds worst_clock_error(ControlChannel& channel, const ClockOffset& before,
                          const ClockOffset& after);

}  // namespace syncline::live
