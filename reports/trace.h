// Where the time of a step goes, operation by operation: a Chrome trace-event file, to be opened in
// https://ui.perfetto.dev. Format: "Trace Event Format", Google, 2016. One process per strategy and
// rank, one thread per stream, one complete event per operation; besides, a bar for each step,
// arrows from an operation to those on other streams that waited for it, and counters: bytes in
// flight, whether an exchange is exposed (1) or hidden, and how full a fabric's hottest links are.
#pragma once

#include <cstddef>
#include <string>

#include "studies/rows/report.h"

namespace syncline::reports {

// However large the plan, viewers stay quick: at most this many ranks a strategy, and events up to
// this many bytes in all, shared fairly among the strategies. What is left out is noted in the
// file: by an instant event where the strategy breaks off, and in all under "otherData".
inline constexpr std::size_t kTracedRanks = 4;
inline constexpr std::size_t kTraceBytes = 9'000'000;

// What a trace opens on unless more is asked for: the last step of the best strategy, from 0 on.
measure::Report step_of_best(const measure::Report& report);

std::string chrome_trace(const measure::Report& report);

// Returns the names of a bucket's tensors, so many at most: "a, b and 3 more".
std::string tensors_text(const plan::Bucket& bucket, const Workload& workload, std::size_t most);

}  // namespace syncline::reports
