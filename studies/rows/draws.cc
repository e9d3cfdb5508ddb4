#include "studies/rows/draws.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "core/base/statistics.h"

namespace syncline::measure {
namespace {

constexpr std::size_t kDraws = 32;
constexpr std::size_t kInputs = kUncertainties + kGuessedKinds;

// Returns the places 0 to n - 1 in a random order that is the same on every machine.
std::vector<std::size_t> random_order(std::size_t n, std::mt19937_64& random) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

// Each pair of mirrored ranges goes to one pair of mirrored draws.
std::vector<Draw> latin_hypercube() {
  constexpr std::uint64_t kSeed = 57;
  std::mt19937_64 random(kSeed);
  std::vector<Draw> draws(kDraws);
  for (std::size_t d = 0; d < kInputs; ++d) {
    const auto order = random_order(kDraws / 2, random);
    for (std::size_t k = 0; k < kDraws / 2; ++k) {
      const double share = (static_cast<double>(order[k]) + 0.5) / kDraws;
      const double sign = random() % 2 == 0 ? 1 : -1;
      const double z = sign * normal_quantile(share);
      const auto at = [d](Draw& draw) -> double& {
        return d < kUncertainties ? draw.inputs.at(d) : draw.ways.at(d - kUncertainties);
      };
      at(draws[k]) = z;
      at(draws[kDraws - 1 - k]) = -z;
    }
  }
  return draws;
}

}  // namespace

const std::vector<Draw>& common_draws() {
  static const std::vector<Draw> draws = latin_hypercube();
  return draws;
}

double factor_between(double faster, double slower, double deviations) {
  return std::pow(deviations < 0 ? faster : slower, std::fabs(deviations) / kHeldDeviations);
}

Interval interval_of_draws(double ratio, const std::vector<double>& draws, double own) {
  constexpr double kMinOwn = 1e-6, kReach = 6;
  constexpr int kHalvings = 60;
  const double width = std::max(own, kMinOwn);
  const auto [least, most] = std::ranges::minmax(draws);
  const auto at = [&, low = least, high = most](double share) {
    double below = low - kReach * width, above = high + kReach * width;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (below + above) / 2;
      double sum = 0;
      for (const double draw : draws) sum += normal_distribution((middle - draw) / width);
      (sum < share * static_cast<double>(draws.size()) ? below : above) = middle;
    }
    return ratio * std::exp((below + above) / 2);
  };
  return {at((1 - kHeld) / 2), at((1 + kHeld) / 2)};
}

}  // namespace syncline::measure
