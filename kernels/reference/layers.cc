#include "kernels/reference/layers.h"

#include <cassert>
#include <cmath>
#include <numbers>

namespace syncline::kernels {
namespace {

// Returns the normal distribution; erfc keeps the digits of its lower tail.
double phi(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// phi(z) is nearly (1 + tanh(root * (z + cubic * z^3))) / 2.
constexpr double kRoot = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // root of 2 / pi
constexpr double kCubic = 0.044715;

double phi_by_tanh(double z) { return 0.5 * (1 + std::tanh(kRoot * (z + kCubic * z * z * z))); }

}  // namespace

double activate(Nonlinearity kind, double z) {
  if (kind == Nonlinearity::kRelu) return z < 0 ? 0 : z;
  if (kind == Nonlinearity::kGelu) return z * phi(z);
  if (kind == Nonlinearity::kGeluTanh) return z * phi_by_tanh(z);
  return z;
}

double activation_slope(Nonlinearity kind, double z) {
  if (kind == Nonlinearity::kRelu) return z > 0 ? 1 : 0;
  if (kind == Nonlinearity::kGelu) {
    return phi(z) + z * std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  }
  if (kind == Nonlinearity::kGeluTanh) {
    const double p = phi_by_tanh(z);
    return p + z * 2 * p * (1 - p) * kRoot * (1 + 3 * kCubic * z * z);
  }
  return 1;
}

namespace {

// Returns the number of rows.
std::size_t rows_of(const NormedPlane& plane) { return plane.x.size() / plane.channels; }

// Returns the activation's inputs.
std::vector<double> pre_activations(const NormedPlane& plane, const NormedOutput& statistics) {
  std::vector<double> z(plane.x.size());
  for (std::size_t i = 0; i < z.size(); ++i) {
    const std::size_t c = i % plane.channels;
    const double deviation = std::sqrt(statistics.variance[c] + plane.epsilon);
    z[i] = plane.gamma[c] * (plane.x[i] - statistics.mean[c]) / deviation + plane.beta[c];
    if (!plane.residual.empty()) z[i] += plane.residual[i];
  }
  return z;
}

NormedOutput statistics_of(const NormedPlane& plane) {
  assert(plane.x.size() >= plane.channels && plane.channels > 0 && "at least one row");
  const auto rows = static_cast<double>(rows_of(plane));
  NormedOutput output;
  output.mean.resize(plane.channels);
  output.variance.resize(plane.channels);
  for (std::size_t i = 0; i < plane.x.size(); ++i) {
    output.mean[i % plane.channels] += plane.x[i] / rows;
  }
  for (std::size_t i = 0; i < plane.x.size(); ++i) {
    const double distance = plane.x[i] - output.mean[i % plane.channels];
    output.variance[i % plane.channels] += distance * distance / rows;
  }
  return output;
}

}  // namespace

NormedOutput batch_norm(const NormedPlane& plane) {
  NormedOutput output = statistics_of(plane);
  output.y = pre_activations(plane, output);
  for (auto& value : output.y) value = activate(plane.activation, value);
  return output;
}

NormedGradients batch_norm_gradients(const NormedPlane& plane, const std::vector<double>& dy) {
  const NormedOutput statistics = statistics_of(plane);
  const auto z = pre_activations(plane, statistics);
  const auto rows = static_cast<double>(rows_of(plane));
  const auto normalised = [&](std::size_t i) {
    const std::size_t c = i % plane.channels;
    return (plane.x[i] - statistics.mean[c]) / std::sqrt(statistics.variance[c] + plane.epsilon);
  };
  std::vector<double> dz(dy.size());
  NormedGradients gradients;
  gradients.dgamma.resize(plane.channels);
  gradients.dbeta.resize(plane.channels);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    dz[i] = dy[i] * activation_slope(plane.activation, z[i]);
    gradients.dbeta[i % plane.channels] += dz[i];
    gradients.dgamma[i % plane.channels] += dz[i] * normalised(i);
  }
  // x moves y directly, and through the mean and the deviation of its channel.
  gradients.dx.resize(dy.size());
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const std::size_t c = i % plane.channels;
    const double scale = plane.gamma[c] / std::sqrt(statistics.variance[c] + plane.epsilon);
    gradients.dx[i] =
        scale * (dz[i] - gradients.dbeta[c] / rows - normalised(i) * gradients.dgamma[c] / rows);
  }
  if (!plane.residual.empty()) gradients.dresidual = std::move(dz);
  return gradients;
}

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
      output.y.push_back(activate(activation, z));
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
