// What a trace's counters show over time: how much is on its way, and whether nothing hides it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/measure/report.h"

namespace syncline::reports {

// The state of one rank from a time on, until the next.
struct Counted {
  std::int64_t nanoseconds = 0;
  std::int64_t bytes_in_flight = 0;  // payload of the exchanges that are under way
  bool exposed = false;              // one is, and the compute stream stands still
  std::vector<double> links = {};    // of each of the traced ones the share that is in use
};

// In order of time; only where something changes.
std::vector<Counted> counters_of(const measure::Traced& traced, int rank);

// As all times of a trace are rounded.
std::int64_t nanoseconds(Seconds time);

}  // namespace syncline::reports
