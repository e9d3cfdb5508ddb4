#include "core/run/stragglers.h"

#include <algorithm>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "core/random.h"
#include "core/statistics.h"

namespace syncline::run {
namespace {

// E[max of n draws] = low + integral of (1 - F(x)^n) dx from low, where F is 0 below `low`, by
// adaptive Gauss-Kronrod quadrature. `above` is 1 - F, which keeps its digits where F is almost 1.
template <typename Above>
double expected_maximum(const Above& above, int n, double low, double high) {
  using Rule = boost::math::quadrature::gauss_kronrod<double, 31>;
  constexpr unsigned kDeepest = 15;
  constexpr double kClose = 1e-9;
  const auto any_above = [&](double x) { return -std::expm1(n * std::log1p(-above(x))); };
  return low + Rule::integrate(any_above, low, high, kDeepest, kClose);
}

std::uint64_t hashed(std::uint64_t key) { return Random(key).bits(); }

}  // namespace

double expected_slowest(const Jitter& jitter, int ranks, int steps) {
  if (jitter.kind == Jitter::Kind::kNone) return 1.0;
  if (jitter.kind == Jitter::Kind::kNormal) {
    if (ranks == 1) return 1.0;
    // Beyond 12 standard deviations lies nothing, whatever the number of ranks.
    const auto above = [](double x) { return normal_distribution(-x); };
    const double z = expected_maximum(above, ranks, -12.0, 12.0);
    return 1.0 + jitter.relative * z / std::sqrt(static_cast<double>(steps));
  }
  const double mean = steps;
  if (ranks == 1) return 1.0 + jitter.relative;
  // The sum of so many exponentials of mean 1 has Erlang's distribution.
  const auto above = [&](double x) { return boost::math::gamma_q(mean, x); };
  const double high = mean + 12 * std::sqrt(mean) + 12 + 3 * std::log(static_cast<double>(ranks));
  return 1.0 + jitter.relative * expected_maximum(above, ranks, 0.0, high) / mean;
}

double expected_slowest(const Jitter& jitter, const plan::Plan& plan) {
  return expected_slowest(jitter, plan.ranks, plan.steps * plan.passes);
}

double jitter_factor(const Jitter& jitter, std::uint64_t seed, int rank, std::int64_t step) {
  if (jitter.kind == Jitter::Kind::kNone) return 1.0;
  const std::uint64_t key = hashed(hashed(hashed(seed) ^ static_cast<std::uint64_t>(rank)) ^
                                   static_cast<std::uint64_t>(step));
  const double first = Random(key).uniform();
  if (jitter.kind == Jitter::Kind::kExponential) return 1.0 - jitter.relative * std::log(first);
  const double second = Random(key ^ 0xd1b54a32d192ed03ULL).uniform();
  return std::max(0.0, 1.0 + jitter.relative * Random::normal_of(first, second));
}

}  // namespace syncline::run
