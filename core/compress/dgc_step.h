// The step of Deep Gradient Compression (Lin et al., ICLR 2018) on one tensor, on the host: the
// truth that the kernels are held against, to the bit.
//
// All arithmetic is fp32, each operation rounded by itself in the order written here:
//   g' = scale g, then + decay w
//   u' = m u + g'        v' = v + u'
//   u' = m (u + g')      v' = (v + u') + g'       (Nesterov)
// u is the velocity, v the residual (what has not been sent yet). An element whose v' would not be
// finite keeps its old u and v.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncline {

struct DgcUpdate {
  float momentum = 0.9f;
  float scale = 1.0f;  // clip coefficient times what the gradient is multiplied by
  float weight_decay = 0.0f;
  bool nesterov = false;
};

// What a rank sends of a tensor: rising indices and their values.
struct SparseMessage {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

// Momentum correction and accumulation, in place. `weight` may be empty where weight_decay is 0.
// Comes back true where an element was held.
bool accumulate(std::span<const float> gradient, std::span<const float> weight,
                const DgcUpdate& update, std::span<float> velocity, std::span<float> residual);

// The min(kept, n) largest magnitudes of the residual, ties to the lower index, in index order.
// What is not finite is never among them.
std::vector<std::uint32_t> largest_magnitudes(std::span<const float> residual, std::int64_t kept);

// Takes these elements out of the residual, and clears their velocity (momentum factor masking).
SparseMessage take_out(std::vector<std::uint32_t> indices, std::span<float> velocity,
                       std::span<float> residual);

// Clipping by a norm of the gradient's own: min(1, max_norm / norm) with the norm in double, or 1
// where max_norm is 0; not a number where an element is not finite: the step is to be skipped then.
float clip_coefficient(std::span<const float> gradient, float max_norm);

}  // namespace syncline
