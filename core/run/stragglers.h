// Ranks with uneven speed. A rank's factor in a step is 1 + relative * z (Jitter); waiting for the
// slowest of n costs the expected maximum.
#pragma once

#include <cstdint>

#include "core/cluster.h"
#include "core/plan.h"

namespace syncline::run {

// Returns E[max over `ranks` of the mean factor over `steps` independent steps]: the factor of the
// slowest rank's computation if all ranks synchronise every `steps` steps. 1 without jitter.
// Normal: 1 + relative * z_n / sqrt(steps), z_n the expected maximum of n standard normals;
// exponential: from the Erlang distribution of the sum. Both by quadrature.
double expected_slowest(const Jitter& jitter, int ranks, int steps);

// Ranks wait for their group every `passes` micro-batches, and groups for each other every `steps`
// times that. The factor is that of the slowest group: the mean over its waits of its slowest
// rank's factor, taken as normal. With one group, or groups of one rank, it is expected_slowest()
// above.
struct Waits {
  int ranks = 1;  // of a group
  int groups = 1;
  int passes = 1;
  int steps = 1;
  bool operator==(const Waits&) const = default;
};
double expected_slowest(const Jitter& jitter, const Waits& waits);

// Returns the waits of a plan; ranks that exchange gradients in a local step are a group.
Waits waits_of(const plan::Plan& plan);
inline double expected_slowest(const Jitter& jitter, const plan::Plan& plan) {
  return expected_slowest(jitter, waits_of(plan));
}

// Returns the factor of one rank in one step: a pure function, the same on any machine.
double jitter_factor(const Jitter& jitter, std::uint64_t seed, int rank, std::int64_t step);

}  // namespace syncline::run
