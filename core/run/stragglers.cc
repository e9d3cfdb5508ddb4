#include "core/run/stragglers.h"

#include <algorithm>
#include <cmath>

namespace syncline {
namespace {

// splitmix64 (Steele, Lea, Flood 2014): a counter in, well-mixed bits out.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// In (0, 1), never an end point.
double uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53; }

// E[max of n draws] = low + integral of (1 - F(x)^n) dx from low, where F is 0 below `low`.
// Simpson's rule; the integrand falls smoothly from 1 to 0.
template <typename Distribution>
double expected_maximum(Distribution f, int n, double low, double high) {
  constexpr int kIntervals = 4000;
  const double width = (high - low) / kIntervals;
  const auto tail = [&](double x) { return 1.0 - std::pow(f(x), n); };
  double sum = tail(low) + tail(high);
  for (int i = 1; i < kIntervals; ++i) sum += tail(low + width * i) * (i % 2 == 1 ? 4 : 2);
  return low + sum * width / 3;
}

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// Sum of k exponentials of mean 1: 1 - e^-x * sum over i < k of x^i / i!, for few of them; for many
// the cube root of the mean is normal to better than 1e-4 (Wilson and Hilferty 1931).
double erlang_distribution(double x, int k) {
  constexpr int kMany = 200;
  if (k > kMany) {
    const double ninth = 1.0 / (9.0 * k);
    return normal_distribution((std::cbrt(x / k) - (1.0 - ninth)) / std::sqrt(ninth));
  }
  double term = std::exp(-x);
  double below = term;
  for (int i = 1; i < k; ++i) {
    term *= x / i;
    below += term;
  }
  return std::max(0.0, 1.0 - below);
}

}  // namespace

double expected_slowest(const Jitter& jitter, int ranks, int steps) {
  if (jitter.kind == Jitter::Kind::kNone) return 1.0;
  if (jitter.kind == Jitter::Kind::kNormal) {
    if (ranks == 1) return 1.0;
    // Beyond 12 standard deviations lies nothing, whatever the number of ranks.
    const double z = expected_maximum(normal_distribution, ranks, -12.0, 12.0);
    return 1.0 + jitter.relative * z / std::sqrt(static_cast<double>(steps));
  }
  const double mean = steps;
  const double high = mean + 12 * std::sqrt(mean) + 12 + 3 * std::log(static_cast<double>(ranks));
  const double sum = ranks == 1
                         ? mean
                         : expected_maximum([&](double x) { return erlang_distribution(x, steps); },
                                            ranks, 0.0, high);
  return 1.0 + jitter.relative * sum / mean;
}

double jitter_factor(const Jitter& jitter, std::uint64_t seed, int rank, std::int64_t step) {
  if (jitter.kind == Jitter::Kind::kNone) return 1.0;
  const std::uint64_t key =
      mix(mix(mix(seed) ^ static_cast<std::uint64_t>(rank)) ^ static_cast<std::uint64_t>(step));
  const double u = uniform(mix(key));
  if (jitter.kind == Jitter::Kind::kExponential) return 1.0 - jitter.relative * std::log(u);
  // Box and Muller (1958).
  constexpr double kTwoPi = 6.283185307179586;
  const double v = uniform(mix(key ^ 0xd1b54a32d192ed03ULL));
  const double z = std::sqrt(-2.0 * std::log(u)) * std::cos(kTwoPi * v);
  return std::max(0.0, 1.0 + jitter.relative * z);
}

}  // namespace syncline
