// SGD and Adam on the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace syncline::kernels {

// State of stochastic gradient descent as torch.optim.SGD defines it, for weights in one flat
// array: the reference for kernels/update.cu.
struct SgdMemory {
  std::vector<float> velocity;  // the weights' size, or empty before the first step
};

// Does one step, in fp32. Requires `gradients` as long as `weights`.
void sgd_step(const SgdOptions& settings, std::span<const float> gradients,
              std::span<float> weights, SgdMemory& memory);

// State of Adam (Kingma and Ba, ICLR 2015), for the same weights.
struct AdamMemory {
  std::int64_t steps = 0;
  std::vector<float> mean;      // mean gradient: the weights' size, or empty before the first step
  std::vector<float> variance;  // its uncentred second moment
};

// Does one step, in fp32, bias corrections in double. Requires `gradients` as long as `weights`.
void adam_step(const AdamOptions& settings, std::span<const float> gradients,
               std::span<float> weights, AdamMemory& memory);

// The step of Deep Gradient Compression (Lin et al., ICLR 2018) on one tensor, and the sparse
// update, on the host. Tests compare the kernels with it, to the bit. The accumulation before a
// step is in core/compress/momentum_correction.h.

// A rank's message for one tensor: rising indices and their values.
struct SparseMessage {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

// Returns the indices of the min(kept, n) largest magnitudes of the residual, ties to the lower
// index, in index order. Elements that are not finite are skipped.
std::vector<std::uint32_t> largest_magnitudes(std::span<const float> residual, std::int64_t kept);

// Takes these elements out of the residual, and clears their velocity (momentum factor masking).
SparseMessage extract(std::vector<std::uint32_t> indices, std::span<float> velocity,
                      std::span<float> residual);

// Applies every rank's pairs to the weights, in rank order, w_i = w_i - rate v; product and
// difference are rounded separately. Skips pads (index 0xffffffff). Returns false, and changes no
// weight, if an index is not less than the number of weights, indices do not rise, or a value is
// not finite.
bool apply_messages(std::span<const SparseMessage> ranks, float rate, std::span<float> weights);

}  // namespace syncline::kernels
