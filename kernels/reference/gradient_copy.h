// Gradients on their way into a bucket: scaled, rounded to the bucket's type, and measured. The
// truth that kernels/pack.cu is held against.
#pragma once

#include <span>
#include <vector>

#include "kernels/host_device.h"

namespace syncline::kernels {

struct CopiedGradients {
  std::vector<float> values;  // one tensor after the other, as the bucket's type holds them
  double sum_of_squares = 0;  // of these
  bool finite = true;
};

// Scaling is in fp32, before rounding (to the nearest, ties to even).
CopiedGradients copy_gradients(std::span<const std::vector<float>> tensors, float scale,
                               ElementType to);

// What gradients of this norm are multiplied by so that it does not exceed max_norm, as torch's
// clip_grad_norm_ has it: min(1, max_norm / (norm + 1e-6)).
double clip_coefficient(double norm, double max_norm);

}  // namespace syncline::kernels
