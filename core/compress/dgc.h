// Deep Gradient Compression (Lin et al., ICLR 2018): the largest `kept` elements travel as
// (index, value) pairs, the rest waits in the gradient for a later step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/compress/codec.h"
#include "core/scenario/strategy.h"

namespace syncline::compress {

// DGC's ramp: which share of a gradient is sent at a training step, and how many elements that is.
// Rule and single-precision arithmetic as in Paddle's dgc_op (develop, 2021): the counts agree with
// the framework's to the element.

// Index into compression.sparsity at this step, or -1 while gradients are still dense.
// Steps count from 0; between begin and begin + rampup_step the sparsities share the ramp evenly.
int sparsity_index(const Compression& compression, std::int64_t step);

// Elements kept of `elements` at that sparsity: int(float(elements) * (1 - sparsity)), in fp32.
// 2,048,000 at 0.999 gives 2047, where exact arithmetic would give 2048. At least 1.
std::int64_t kept_elements(std::int64_t elements, double sparsity);

// The steps at which the plan changes: the ramp's first step and each later rise, ascending.
std::vector<std::int64_t> sparsity_changes(const Compression& compression);

// Momentum correction of Deep Gradient Compression (Lin et al., ICLR 2018): the momentum is applied
// before elements are chosen, so that what waits keeps its own.

struct DgcUpdate {
  float momentum = 0.9f;
  float scale = 1.0f;  // clip coefficient times what the gradient is multiplied by
  float weight_decay = 0.0f;
  bool nesterov = false;
};

// Changes velocity and residual in place. `weight` may be empty where weight_decay is 0. Returns
// true where an element kept its old values.
bool accumulate(std::span<const float> gradient, std::span<const float> weight,
                const DgcUpdate& update, std::span<float> velocity, std::span<float> residual);

}  // namespace syncline::compress
