// Whether an exchange left on every rank what the host executor says it should.
#pragma once

#include <cstdint>

#include "core/run/executor.h"
#include "core/run/sample_gradients.h"
#include "live/control_channel.h"

namespace syncline::live {

// Of the gradients that ranks compare.
inline constexpr std::uint64_t kSampleSeed = 1;

// Called on all ranks together, with this rank's gradients after one or more periods from
// sample_gradients(..., seed, values). Integers must be equal to the last bit: rank 0 computes all
// ranks' results and the ranks compare digests. Real values may differ by rounding: every rank
// computes them. The answer is the same everywhere. Costs rank 0 (with real values: every rank) the
// memory of all ranks' gradients several times over.
bool values_match(ControlChannel& channel, const Workload& workload, const plan::Plan& plan,
                  const run::RankGradients& result, std::uint64_t seed, run::SampleValues values);

}  // namespace syncline::live
