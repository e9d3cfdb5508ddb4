// SGD and Adam on the host.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/update.h"

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

}  // namespace syncline::kernels
