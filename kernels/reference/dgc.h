// The step of Deep Gradient Compression (Lin et al., ICLR 2018) on one tensor, and the sparse
// update, on the host. Tests compare the kernels with it, to the bit. What
// accumulates before a step is core/compress/momentum_correction.h.
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

// The sparse update: every rank's pairs into the weights, in the order of the ranks,
// w_i = w_i - rate v for each pair, rank after rank; product and difference rounded by themselves.
// False, and no weight changes, where an index is not less than the number of weights, indices do
// not rise, or a value is not finite. Pads (index 0xffffffff) are passed over.
bool apply_messages(std::span<const SparseMessage> ranks, float rate, std::span<float> weights);

}  // namespace syncline::kernels
