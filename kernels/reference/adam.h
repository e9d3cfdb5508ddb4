// Adam (Kingma and Ba, ICLR 2015) and AdamW (Loshchilov and Hutter, ICLR 2019) as torch.optim
// defines them, for weights in one flat array: the truth that kernels/update.cu is held against.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncline::kernels {

struct AdamSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  // AdamW: the weights shrink by themselves, not through the gradient
};

struct AdamMemory {
  std::int64_t steps = 0;
  std::vector<float> mean;      // of the gradient: as long as the weights, or empty before a step
  std::vector<float> variance;  // its uncentred second moment
};

// One step, in fp32; the bias corrections in double. `gradients` is as long as `weights`.
void adam_step(const AdamSettings& settings, std::span<const float> gradients,
               std::span<float> weights, AdamMemory& memory);

}  // namespace syncline::kernels
