// Momentum correction of Deep Gradient Compression (Lin et al., ICLR 2018): the momentum is applied
// before elements are chosen, so that those that wait keep their own.
#pragma once

#include <span>

namespace syncline::compress {

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
