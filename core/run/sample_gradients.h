// Gradients made up for checking an exchange: the same on every machine for the same seed, each
// rank's by itself.
#pragma once

#include <cstdint>

#include "core/job.h"
#include "core/plan.h"
#include "core/run/payload.h"

namespace syncline::run {

// Integers: their sums over all ranks are exact in any order. Small ones (up to 256 over all ranks)
// in every number format, wide ones (normally distributed over 24 bits, so that a codec that looks
// for the largest finds as few equals as among real gradients) in fp32 and fp64. Real: normally
// distributed floats, whose sums are rounded. A sparse gradient has as many non-zero rows as it
// announces, spread over the tensor.
enum class SampleValues { kIntegers, kWideIntegers, kReal };

// Finds the widest integers that are exact in every number format in which the plan's buckets
// travel.
SampleValues exact_values(const plan::Plan& plan);

RankGradients sample_gradients(const Workload& workload, int rank, int ranks, std::uint64_t seed,
                               SampleValues values = SampleValues::kIntegers);

}  // namespace syncline::run
