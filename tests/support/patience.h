// Waiting for what another process or thread does.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace syncline::test {

// Whether it comes true within a time that a loaded machine is given, too.
inline bool comes_true(const std::function<bool()>& condition) {
  using Clock = std::chrono::steady_clock;
  const auto wait_limit = Clock::now() + std::chrono::seconds(60);
  while (Clock::now() < wait_limit) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace syncline::test
