// Ranks that compute at uneven speed. A rank's factor in a step is 1 + relative * z (Jitter); those
// who wait for the slowest of n pay the expected maximum.
#pragma once

#include <cstdint>

#include "core/plan/plan.h"
#include "core/scenario/cluster.h"

namespace syncline::run {

// E[max over `ranks` of the mean factor over `steps` independent steps]: the factor by which the
// slowest rank's computation is longer when all ranks synchronise every `steps` steps. 1 without
// jitter. Normal: 1 + relative * z_n / sqrt(steps), z_n the expected maximum of n standard normals;
// exponential: from the Erlang distribution of the sum. Both by quadrature.
double expected_slowest(const Jitter& jitter, int ranks, int steps);

// Of a plan's ranks, over the micro-batches between two of its waits.
double expected_slowest(const Jitter& jitter, const plan::Plan& plan);

// The factor of one rank in one step: a pure function of its arguments, the same on any machine.
double jitter_factor(const Jitter& jitter, std::uint64_t seed, int rank, std::int64_t step);

}  // namespace syncline::run
