// Gradients made up for checking an exchange: the same on every machine for the same seed, each
// rank's by itself.
#pragma once

#include <cstdint>

#include "core/job.h"
#include "core/plan.h"
#include "core/run/payload.h"

namespace syncline::run {

// kIntegers: exact sums over all ranks in any order and in every number format (up to 256 in all).
// kWideIntegers: normally distributed over 24 bits, exact in fp32 and fp64; a codec that selects
// the largest finds as few equals as among real gradients. kReal: normally distributed floats, so
// sums are rounded. A sparse gradient has the announced number of non-zero rows, spread over the
// tensor.
enum class SampleValues { kIntegers, kWideIntegers, kReal };

// Returns the widest integers that are exact in every number format of the plan's buckets.
SampleValues exact_values(const plan::Plan& plan);

RankGradients sample_gradients(const Workload& workload, int rank, int ranks, std::uint64_t seed,
                               SampleValues values = SampleValues::kIntegers);

}  // namespace syncline::run
