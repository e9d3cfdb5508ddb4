// The operations of a step over time as a Chrome trace-event file, for https://ui.perfetto.dev.
// Format: "Trace Event Format", Google, 2016. One process per strategy and rank, one thread per
// stream, one complete event per operation. Also a bar per step, arrows to operations that waited
// for another stream, and counters: bytes in flight, an exposed exchange (1), load of the hottest
// links.
#pragma once

#include <cstddef>
#include <string>

#include "studies/rows/report.h"

namespace syncline::reports {

// Limits that keep viewers quick: traced ranks per strategy, and bytes of events, shared fairly
// among the strategies. The file notes omissions: an instant event at the end of a cut strategy,
// and totals under "otherData".
inline constexpr std::size_t kTracedRanks = 4;
inline constexpr std::size_t kTraceBytes = 9'000'000;

// Returns the default view of a trace: the last step of the best strategy, with time from 0.
measure::Report step_of_best(const measure::Report& report);

std::string chrome_trace(const measure::Report& report);

// Returns the names of at most `most` of a bucket's tensors: "a, b and 3 more".
std::string tensors_text(const plan::Bucket& bucket, const Workload& workload, std::size_t most);

}  // namespace syncline::reports
