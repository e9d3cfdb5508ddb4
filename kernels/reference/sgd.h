// Stochastic gradient descent as torch.optim.SGD defines it, for weights in one flat array: the
// truth that kernels/update.cu is held against.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncline::kernels {

struct SgdSettings {
  double learning_rate = 0;
  double momentum = 0;      // 0: none, and no buffer is kept
  double dampening = 0;     // how much of the gradient the momentum buffer leaves out
  double weight_decay = 0;  // L2: added to the gradient
  bool nesterov = false;    // only with momentum and without dampening
};

struct SgdMemory {
  std::int64_t steps = 0;
  std::vector<float> velocity;  // as long as the weights, or empty before the first step
};

// One step, in fp32. `gradients` is as long as `weights`.
void sgd_step(const SgdSettings& settings, std::span<const float> gradients,
              std::span<float> weights, SgdMemory& memory);

}  // namespace syncline::kernels
