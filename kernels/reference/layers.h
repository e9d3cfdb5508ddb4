// Activations, batch normalisation and a linear layer on the host, in double.
#pragma once

#include <cstddef>
#include <vector>

namespace syncline::kernels {

// Activations and their slopes in double, the reference for the kernels'. kGeluTanh: gelu with tanh
// in place of the normal distribution (Hendrycks and Gimpel 2016), as in cublasLt's epilogues.
enum class Nonlinearity { kNone, kRelu, kGelu, kGeluTanh };

double activate(Nonlinearity kind, double z);

// Returns d activated / dz; relu's is 0 at 0.
double activation_slope(Nonlinearity kind, double z);

// Batch normalisation (Ioffe and Szegedy, ICML 2015) over rows, in training, in double: the
// reference for kernels/batch_norm.cu.
//
//   y = f(gamma * (x - mean) / sqrt(variance + epsilon) + beta + residual)
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
  std::vector<double> dresidual;  // gradient of the activation's input; empty without residual
  std::vector<double> dgamma;
  std::vector<double> dbeta;
};

NormedOutput batch_norm(const NormedPlane& plane);
NormedGradients batch_norm_gradients(const NormedPlane& plane, const std::vector<double>& dy);

// A linear layer with its activation, forward and backward, in double: the reference for
// kernels/gemm_epilogue.cc. Matrices are row-major.
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

// Returns the gradient of z with x = f(z): (dy w) * f'(z), [rows][inputs]. Its sum over the rows is
// the gradient of the bias in z.
LinearGradient linear_gradient_before(const LinearLayer& layer, const std::vector<double>& dy,
                                      Nonlinearity activation, const std::vector<double>& z);

// Returns the gradients of w, dy^T x, [outputs][inputs], and of b, the sum of dy over the rows.
LinearGradient linear_gradient_of_weights(const LinearLayer& layer, const std::vector<double>& dy);

}  // namespace syncline::kernels
