// Activations, for both sides. Relu keeps a NaN, as torch's does.
//
// Gelu is z * Phi(z), Phi the normal distribution's, with erf by formula 7.1.26 of Abramowitz and
// Stegun (absolute error 1.5e-7): its one exponential is also the density that the slope needs, so
// that neither direction computes longer than its memory takes.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"

namespace syncline::kernels {

enum class Activation { kIdentity, kRelu, kGelu };

SYNCLINE_HOST_DEVICE inline float exponential(float x) {
#if defined(__CUDA_ARCH__)
  return __expf(x);
#else
  return std::exp(x);
#endif
}

// Phi(z), and the density's exponential exp(-z^2 / 2).
SYNCLINE_HOST_DEVICE inline float normal_distribution(float z, float& bell) {
  const float x = fabsf(z) * 0.70710678f;
  bell = exponential(-x * x);
  const float t = 1.0f / (1.0f + 0.3275911f * x);
  const float polynomial =
      t * (0.254829592f +
           t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const float tail = 0.5f * polynomial * bell;  // beyond |z|
  return z < 0 ? tail : 1.0f - tail;
}

template <Activation kActivation>
SYNCLINE_HOST_DEVICE inline float activate(float z) {
  if constexpr (kActivation == Activation::kRelu) return z < 0 ? 0.0f : z;
  if constexpr (kActivation == Activation::kGelu) {
    if (z < -40.0f) return 0.0f;  // also minus infinity, whose product is NaN
    float bell;
    return z * normal_distribution(z, bell);
  }
  return z;
}

// The derivative at z; relu's is 0 at 0, as torch's.
template <Activation kActivation>
SYNCLINE_HOST_DEVICE inline float slope(float z) {
  if constexpr (kActivation == Activation::kRelu) return z <= 0 ? 0.0f : 1.0f;
  if constexpr (kActivation == Activation::kGelu) {
    if (fabsf(z) > 40.0f) return z < 0 ? 0.0f : 1.0f;
    float bell;
    const float phi = normal_distribution(z, bell);
    return phi + z * bell * 0.39894228f;  // 1 / sqrt(2 pi)
  }
  return 1.0f;
}

}  // namespace syncline::kernels
