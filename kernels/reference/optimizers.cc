#include "kernels/reference/optimizers.h"

#include <cassert>
#include <cmath>

namespace syncline::kernels {
void sgd_step(const SgdOptions& settings, std::span<const float> gradients,
              std::span<float> weights, SgdMemory& memory) {
  assert(gradients.size() == weights.size() && "a gradient for every weight");
  const auto rate = static_cast<float>(settings.learning_rate);
  const auto momentum = static_cast<float>(settings.momentum);
  if (settings.momentum != 0) memory.velocity.resize(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    float direction = gradients[i];
    if (settings.momentum != 0) {
      direction = memory.velocity[i] = momentum * memory.velocity[i] + direction;
    }
    weights[i] = weights[i] - rate * direction;
  }
}

void adam_step(const AdamOptions& settings, std::span<const float> gradients,
               std::span<float> weights, AdamMemory& memory) {
  assert(gradients.size() == weights.size() && "a gradient for every weight");
  memory.mean.resize(weights.size());
  memory.variance.resize(weights.size());
  const auto steps = static_cast<double>(++memory.steps);
  const double correction1 = 1 - std::pow(settings.beta1, steps);
  const double correction2 = 1 - std::pow(settings.beta2, steps);
  const auto step_size = static_cast<float>(settings.learning_rate / correction1);
  const auto root_correction = static_cast<float>(std::sqrt(correction2));
  const auto beta1 = static_cast<float>(settings.beta1);
  const auto beta2 = static_cast<float>(settings.beta2);
  const auto rest1 = static_cast<float>(1 - settings.beta1);
  const auto rest2 = static_cast<float>(1 - settings.beta2);
  const auto epsilon = static_cast<float>(settings.epsilon);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float gradient = gradients[i];
    float& mean = memory.mean[i];
    float& variance = memory.variance[i];
    mean = beta1 * mean + rest1 * gradient;
    variance = beta2 * variance + rest2 * (gradient * gradient);
    weights[i] =
        weights[i] - step_size * (mean / (std::sqrt(variance) / root_correction + epsilon));
  }
}

}  // namespace syncline::kernels
