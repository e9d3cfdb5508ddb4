// Momentum correction of Deep Gradient Compression (Lin et al., ICLR 2018): the momentum is applied
// before elements are chosen, so that waiting elements keep their own.
#pragma once

#include <span>

namespace syncline::compress {

struct DgcUpdate {
  float momentum = 0.9f;
  float scale = 1.0f;  // clip coefficient times the gradient's own factor
  float weight_decay = 0.0f;
  bool nesterov = false;
};

// Updates velocity and residual in place. `weight` may be empty if weight_decay is 0. Returns true
// if an element would have become non-finite and kept its old values.
bool accumulate(std::span<const float> gradient, std::span<const float> weight,
                const DgcUpdate& update, std::span<float> velocity, std::span<float> residual);

}  // namespace syncline::compress
