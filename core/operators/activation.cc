#include "core/operators/activation.h"

#include <cmath>
#include <numbers>

namespace syncline {
namespace {

// The normal distribution; erfc keeps the digits of its lower tail.
double phi(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

}  // namespace

double activated(Nonlinearity kind, double z) {
  if (kind == Nonlinearity::kRelu) return z < 0 ? 0 : z;
  if (kind == Nonlinearity::kGelu) return z * phi(z);
  return z;
}

double activation_slope(Nonlinearity kind, double z) {
  if (kind == Nonlinearity::kRelu) return z > 0 ? 1 : 0;
  if (kind == Nonlinearity::kGelu) {
    return phi(z) + z * std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  }
  return 1;
}

}  // namespace syncline
