// The step of Deep Gradient Compression (Lin et al., ICLR 2018) on one tensor, on the host: the
// truth that the kernels are held against, to the bit. What accumulates before it is
// core/compress/momentum_correction.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncline::kernels {

// What a rank sends of a tensor: rising indices and their values.
struct SparseMessage {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

// The min(kept, n) largest magnitudes of the residual, ties to the lower index, in index order.
// What is not finite is never among them.
std::vector<std::uint32_t> largest_magnitudes(std::span<const float> residual, std::int64_t kept);

// Takes these elements out of the residual, and clears their velocity (momentum factor masking).
SparseMessage take_out(std::vector<std::uint32_t> indices, std::span<float> velocity,
                       std::span<float> residual);

// Clipping by a norm of the gradient's own: min(1, max_norm / norm) with the norm in double, or 1
// where max_norm is 0; not a number where an element is not finite: the step is to be skipped then.
float dgc_clip_coefficient(std::span<const float> gradient, float max_norm);

}  // namespace syncline::kernels
