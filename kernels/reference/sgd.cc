#include "kernels/reference/sgd.h"

#include <cassert>

namespace syncline::kernels {

void sgd_step(const SgdSettings& settings, std::span<const float> gradients,
              std::span<float> weights, SgdMemory& memory) {
  assert(gradients.size() == weights.size() && "a gradient for every weight");
  const auto rate = static_cast<float>(settings.learning_rate);
  const auto decay = static_cast<float>(settings.weight_decay);
  const auto momentum = static_cast<float>(settings.momentum);
  const bool first = memory.steps++ == 0;
  if (settings.momentum != 0) memory.velocity.resize(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    float direction = gradients[i] + decay * weights[i];
    if (settings.momentum != 0) {
      float& velocity = memory.velocity[i];
      // The first step's velocity is the gradient, whatever the dampening.
      const float taken = first ? 1.0f : static_cast<float>(1 - settings.dampening);
      velocity = momentum * velocity + taken * direction;
      direction = settings.nesterov ? direction + momentum * velocity : velocity;
    }
    weights[i] = weights[i] - rate * direction;
  }
}

}  // namespace syncline::kernels
