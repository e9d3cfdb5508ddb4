// For comparison: Horovod's tuner, emulated. Not Horovod itself: its C++ optimiser and real timing
// are not exercised.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/support/one_stream.h"

namespace syncline::test {

struct HorovodKnobs {
  double threshold_mib = 128;  // Horovod's defaults
  double cycle_ms = 1;
};

// A step of Horovod's background loop (core/plan/fusion.h): what a tick releases is queued on the
// one stream. The mean over `phases` positions of the first tick, spread evenly over a cycle.
Seconds horovod_step_time(const StepTrace& trace, const AffineCost& cost, const HorovodKnobs& knobs,
                          int phases = 10);

// The step time of one evaluation as a tuner sees it: `measure(knobs)` returns the time of one
// step, with new noise each time.
struct HorovodTrial {
  HorovodKnobs knobs;
  double score = 0;  // bytes per second
};
struct HorovodTuning {
  std::vector<HorovodTrial> trials;  // in order
  std::size_t best = 0;              // the highest observed score
};
HorovodTuning emulate_horovod_autotune(double bytes_a_step, std::uint64_t seed,
                                       const std::function<Seconds(const HorovodKnobs&)>& measure);

}  // namespace syncline::test
