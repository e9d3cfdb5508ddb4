// Momentum correction of Deep Gradient Compression (Lin et al., ICLR 2018): the momentum is applied
// before elements are chosen, so that what waits keeps its own.
//
// All arithmetic is fp32, each operation rounded by itself in the order written here:
//   g' = scale g, then + decay w
//   u' = m u + g'        v' = v + u'
//   u' = m (u + g')      v' = (v + u') + g'       (Nesterov)
// u is the velocity, v the residual (what has not been sent yet). An element whose v' would not be
// finite keeps its old u and v.
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
