// All arithmetic is fp32, each operation rounded by itself in the order written here:
//   g' = scale g, then + decay w
//   u' = m u + g'        v' = v + u'
//   u' = m (u + g')      v' = (v + u') + g'       (Nesterov)
// u is the velocity, v the residual (not sent so far). An element keeps its old u and v if v' would
// not be finite.
#include "core/compress/momentum_correction.h"

#include <cmath>
#include <cstddef>

namespace syncline::compress {

bool accumulate(std::span<const float> gradient, std::span<const float> weight,
                const DgcUpdate& update, std::span<float> velocity, std::span<float> residual) {
  bool held = false;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    float corrected = update.scale * gradient[i];
    if (update.weight_decay != 0) corrected += update.weight_decay * weight[i];
    float next_velocity = 0;
    float next_residual = 0;
    if (update.nesterov) {
      next_velocity = update.momentum * (velocity[i] + corrected);
      next_residual = residual[i] + next_velocity;
      next_residual += corrected;
    } else {
      next_velocity = update.momentum * velocity[i];
      next_velocity += corrected;
      next_residual = residual[i] + next_velocity;
    }
    if (!std::isfinite(next_residual)) {
      held = true;
      continue;
    }
    velocity[i] = next_velocity;
    residual[i] = next_residual;
  }
  return held;
}

}  // namespace syncline::compress
