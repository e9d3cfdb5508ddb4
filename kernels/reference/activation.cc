#include "kernels/reference/activation.h"

#include <cmath>
#include <numbers>

namespace syncline::kernels {
namespace {

// The normal distribution; erfc keeps the digits of its lower tail.
double phi(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// phi(z) is nearly (1 + tanh(root * (z + cubic * z^3))) / 2.
constexpr double kRoot = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // of 2 / pi
constexpr double kCubic = 0.044715;

double phi_by_tanh(double z) { return 0.5 * (1 + std::tanh(kRoot * (z + kCubic * z * z * z))); }

}  // namespace

double activated(Nonlinearity kind, double z) {
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

}  // namespace syncline::kernels
