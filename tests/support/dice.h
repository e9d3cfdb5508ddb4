// Random draws that are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace syncline::test {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  // Both ends included. The standard's distributions differ from library to library.
  int between(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <typename Item>
  Item pick(const std::vector<Item>& items) {
    return items[static_cast<std::size_t>(between(0, static_cast<int>(items.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace syncline::test
