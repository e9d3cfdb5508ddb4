// Random numbers of which the same seed gives the same row on every machine: splitmix64 (Steele,
// Lea, Flood 2014). The standard library's distributions differ from one implementation to the
// next, so those needed stand here.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace syncline {

class Random {
 public:
  // Streams of one seed are independent of each other.
  Random(std::uint64_t seed, std::uint64_t stream) : state_(mixed(mixed(seed) + stream)) {}

  std::uint64_t bits() { return mixed(state_ += 0x9e3779b97f4a7c15U); }

  // In (0, 1).
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }

  // Mean 0, variance 1 (Box and Muller).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  // 0 .. bound - 1. Requires bound > 0.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(bits() % bound); }

  template <typename T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }

 private:
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  std::uint64_t state_;
};

}  // namespace syncline
