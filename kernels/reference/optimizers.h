// SGD and Adam on the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace syncline::kernels {

// Stochastic gradient descent as torch.optim.SGD defines it, for weights in one flat array: the
// truth that kernels/update.cu is held against.
struct SgdMemory {
  std::vector<float> velocity;  // as long as the weights, or empty before the first step
};

// One step, in fp32. `gradients` is as long as `weights`.
void sgd_step(const SgdOptions& settings, std::span<const float> gradients,
              std::span<float> weights, SgdMemory& memory);

// Adam (Kingma and Ba, ICLR 2015) likewise.
struct AdamMemory {
  std::int64_t steps = 0;
  std::vector<float> mean;      // of the gradient: as long as the weights, or empty before a step
  std::vector<float> variance;  // its uncentred second moment
};

// One step, in fp32; the bias corrections in double. `gradients` is as long as `weights`.
void adam_step(const AdamOptions& settings, std::span<const float> gradients,
               std::span<float> weights, AdamMemory& memory);

// The step of Deep Gradient Compression (Lin et al., ICLR 2018) on one tensor, and the sparse
// update, on the host. Tests compare the kernels with it, to the bit. What
// accumulates before a step is core/compress/momentum_correction.h.

// What a rank sends of a tensor: rising indices and their values.
struct SparseMessage {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

// Returns the min(kept, n) largest magnitudes of the residual, ties to the lower index, in index
// order. What is not finite is never among them.
std::vector<std::uint32_t> largest_magnitudes(std::span<const float> residual, std::int64_t kept);

// Takes these elements out of the residual, and clears their velocity (momentum factor masking).
SparseMessage take_out(std::vector<std::uint32_t> indices, std::span<float> velocity,
                       std::span<float> residual);

// Returns the sparse update: every rank's pairs into the weights, in the order of the ranks, w_i =
// w_i - rate v for each pair, rank after rank; product and difference rounded by themselves. False,
// and no weight changes, where an index is not less than the number of weights, indices do not
// rise, or a value is not finite. Pads (index 0xffffffff) are passed over.
bool apply_messages(std::span<const SparseMessage> ranks, float rate, std::span<float> weights);

}  // namespace syncline::kernels
