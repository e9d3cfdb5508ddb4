// Random numbers that are the same for a seed on every machine: splitmix64 (Steele, Lea, Flood
// 2014). The standard library's distributions differ between implementations, so the needed ones
// are here.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace syncline {

class Random {
 public:
  // Begins a sequence of its own for every state.
  explicit Random(std::uint64_t state) : state_(state) {}
  // Begins a stream; streams of one seed are independent of each other.
  Random(std::uint64_t seed, std::uint64_t stream) : state_(mixed(mixed(seed) + stream)) {}

  std::uint64_t bits() { return mixed(state_ += 0x9e3779b97f4a7c15U); }

  // Returns a number in (0, 1), never an end point.
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }

  // Returns a number with mean 0 and variance 1 (Box and Muller 1958).
  double normal() {
    const double first = uniform();
    return normal_of(first, uniform());
  }
  // Returns such a number from two given uniform numbers.
  static double normal_of(double first, double second) {
    return std::sqrt(-2 * std::log(first)) * std::cos(2 * std::numbers::pi * second);
  }

  // Returns 0 .. bound - 1. Requires bound > 0.
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
