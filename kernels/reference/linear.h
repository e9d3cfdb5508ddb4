// A linear layer with its activation, forward and backward, in double: the truth that
// kernels/gemm_epilogue.cc is held against. Matrices are row-major.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/reference/activation.h"

namespace syncline::kernels {

struct LinearLayer {
  std::size_t rows = 0;
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::vector<double> x;  // [rows][inputs]
  std::vector<double> w;  // [outputs][inputs]
  std::vector<double> b;  // [outputs]
};

struct LinearOutput {
  std::vector<double> z;  // [rows][outputs]: x w^T + b
  std::vector<double> y;  // f(z)
};

struct LinearGradient {
  std::vector<double> values;
  std::vector<double> bias;
};

LinearOutput linear_output(const LinearLayer& layer, Nonlinearity activation);

// Of z where x = f(z): (dy w) * f'(z), [rows][inputs]; its sum over the rows is the gradient of the
// bias that z came with.
LinearGradient linear_gradient_before(const LinearLayer& layer, const std::vector<double>& dy,
                                      Nonlinearity activation, const std::vector<double>& z);

// Of w: dy^T x, [outputs][inputs]; and of b: the sum of dy over the rows.
LinearGradient linear_gradient_of_weights(const LinearLayer& layer, const std::vector<double>& dy);

}  // namespace syncline::kernels
