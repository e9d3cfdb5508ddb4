#include "kernels/reference/linear.h"

namespace syncline::kernels {
namespace {

std::vector<double> column_sums(const std::vector<double>& matrix, std::size_t rows,
                                std::size_t columns) {
  std::vector<double> sums(columns, 0.0);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      sums[column] += matrix[row * columns + column];
    }
  }
  return sums;
}

}  // namespace

LinearOutput linear_output(const LinearLayer& layer, Nonlinearity activation) {
  LinearOutput output;
  for (std::size_t row = 0; row < layer.rows; ++row) {
    for (std::size_t out = 0; out < layer.outputs; ++out) {
      double z = layer.b[out];
      for (std::size_t in = 0; in < layer.inputs; ++in) {
        z += layer.x[row * layer.inputs + in] * layer.w[out * layer.inputs + in];
      }
      output.z.push_back(z);
      output.y.push_back(activated(activation, z));
    }
  }
  return output;
}

LinearGradient linear_gradient_before(const LinearLayer& layer, const std::vector<double>& dy,
                                      Nonlinearity activation, const std::vector<double>& z) {
  LinearGradient gradient;
  for (std::size_t row = 0; row < layer.rows; ++row) {
    for (std::size_t in = 0; in < layer.inputs; ++in) {
      double dx = 0;
      for (std::size_t out = 0; out < layer.outputs; ++out) {
        dx += dy[row * layer.outputs + out] * layer.w[out * layer.inputs + in];
      }
      gradient.values.push_back(dx * activation_slope(activation, z[row * layer.inputs + in]));
    }
  }
  gradient.bias = column_sums(gradient.values, layer.rows, layer.inputs);
  return gradient;
}

LinearGradient linear_gradient_of_weights(const LinearLayer& layer, const std::vector<double>& dy) {
  LinearGradient gradient;
  for (std::size_t out = 0; out < layer.outputs; ++out) {
    for (std::size_t in = 0; in < layer.inputs; ++in) {
      double dw = 0;
      for (std::size_t row = 0; row < layer.rows; ++row) {
        dw += dy[row * layer.outputs + out] * layer.x[row * layer.inputs + in];
      }
      gradient.values.push_back(dw);
    }
  }
  gradient.bias = column_sums(dy, layer.rows, layer.outputs);
  return gradient;
}

}  // namespace syncline::kernels
