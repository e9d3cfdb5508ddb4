// Ranks that compute at uneven speed. A rank's factor in a step is 1 + relative * z (Jitter); those
// who wait for the slowest of n pay the expected maximum.
#pragma once

#include <cstdint>

#include "core/cluster.h"
#include "core/plan.h"

namespace syncline::run {

// E[max over `ranks` of the mean factor over `steps` independent steps]: the factor by which the
// slowest rank's computation is longer when all ranks synchronise every `steps` steps. 1 without
// jitter. Normal: 1 + relative * z_n / sqrt(steps), z_n the expected maximum of n standard normals;
// exponential: from the Erlang distribution of the sum. Both by quadrature.
double expected_slowest(const Jitter& jitter, int ranks, int steps);

// Ranks who wait for those of their group every `passes` micro-batches, and the groups for each
// other once in `steps` of those: the slowest group's mean of its slowest rank's factor. That mean
// is taken as normal. Of one group, or of groups of one rank, it is the above.
struct Waits {
  int ranks = 1;  // of a group
  int groups = 1;
  int passes = 1;
  int steps = 1;
  bool operator==(const Waits&) const = default;
};
double expected_slowest(const Jitter& jitter, const Waits& waits);

// Of a plan: who exchanges gradients in a local step is a group.
Waits waits_of(const plan::Plan& plan);
inline double expected_slowest(const Jitter& jitter, const plan::Plan& plan) {
  return expected_slowest(jitter, waits_of(plan));
}

// Returns the factor of one rank in one step: a pure function of its arguments, the same on any
// machine.
double jitter_factor(const Jitter& jitter, std::uint64_t seed, int rank, std::int64_t step);

}  // namespace syncline::run
