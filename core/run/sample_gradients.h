// Gradients made up for checking an exchange: the same on every machine for the same seed, each
// rank's by itself.
#pragma once

#include <cstdint>

#include "core/run/payload.h"

namespace syncline {

// Small integers: their sums over all ranks are exact in any order, in any number format that has
// eight bits of mantissa (up to 256 ranks). Real: normally distributed floats, whose sums are not.
// A sparse gradient has as many non-zero rows as it announces, spread over the tensor.
enum class SampleValues { kIntegers, kReal };

RankGradients sample_gradients(const Workload& workload, int rank, int ranks, std::uint64_t seed,
                               SampleValues values = SampleValues::kIntegers);

}  // namespace syncline
