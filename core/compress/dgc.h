// Deep Gradient Compression (Lin et al., ICLR 2018): the largest `kept` elements travel as (index,
// value) pairs, the rest waits in the gradient for a later step.
#pragma once

#include <cstdint>
#include <vector>

#include "core/codec.h"
#include "core/strategy.h"

namespace syncline::compress {

// DGC's ramp: the share of a gradient that is sent at a training step, and its elements. Rule and
// single-precision arithmetic as in Paddle's dgc_op (develop, 2021): the counts agree with the
// framework's to the element.

// Returns the index into compression.sparsity at this step, or -1 while gradients are dense. Steps
// count from 0; between begin and begin + rampup_step the sparsities share the ramp evenly.
int sparsity_index(const Compression& compression, std::int64_t step);

// Returns the elements kept of `elements` at that sparsity: int(float(elements) * (1 - sparsity)),
// in fp32. 2,048,000 at 0.999 gives 2047; exact arithmetic would give 2048. At least 1.
std::int64_t kept_elements(std::int64_t elements, double sparsity);

// Returns the steps at which the plan changes: the ramp's first step and each later rise,
// ascending.
std::vector<std::int64_t> sparsity_changes(const Compression& compression);

}  // namespace syncline::compress
