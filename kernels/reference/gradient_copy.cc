#include "kernels/reference/gradient_copy.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace syncline::kernels {
namespace {

float rounded(float value, ElementType to) {
  if (to == ElementType::kFp16) return static_cast<float>(Eigen::half(value));
  if (to == ElementType::kBf16) return static_cast<float>(Eigen::bfloat16(value));
  return value;
}

}  // namespace

CopiedGradients copy_gradients(std::span<const std::vector<float>> tensors, float scale,
                               ElementType to) {
  CopiedGradients copied;
  for (const auto& tensor : tensors) {
    for (const float gradient : tensor) {
      const float value = rounded(gradient * scale, to);
      copied.values.push_back(value);
      copied.sum_of_squares += static_cast<double>(value) * static_cast<double>(value);
      copied.finite = copied.finite && std::isfinite(value);
    }
  }
  return copied;
}

double clip_coefficient(double norm, double max_norm) {
  return std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace syncline::kernels
