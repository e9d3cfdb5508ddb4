// Batch normalisation (Ioffe and Szegedy, ICML 2015) over rows, in training, in double: the truth
// that kernels/batch_norm.cu is held against.
//
//   y = f(gamma * (x - mean) / sqrt(variance + epsilon) + beta + residual)
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/reference/activation.h"

namespace syncline::kernels {

struct NormedPlane {
  std::size_t channels = 0;
  std::vector<double> x;         // [rows][channels]; at least one row
  std::vector<double> residual;  // as x, or empty
  std::vector<double> gamma;     // [channels]
  std::vector<double> beta;
  double epsilon = 1e-5;
  Nonlinearity activation = Nonlinearity::kNone;
};

struct NormedOutput {
  std::vector<double> y;
  std::vector<double> mean;
  std::vector<double> variance;  // biased: divided by the rows
};

struct NormedGradients {
  std::vector<double> dx;
  std::vector<double> dresidual;  // what comes through the activation; empty without residual
  std::vector<double> dgamma;
  std::vector<double> dbeta;
};

NormedOutput batch_norm(const NormedPlane& plane);
NormedGradients batch_norm_gradients(const NormedPlane& plane, const std::vector<double>& dy);

}  // namespace syncline::kernels
