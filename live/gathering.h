// Rank 0's account of the gathering that is under way: whose values have come, and whether the
// others may still be waited for.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "live/socket.h"

namespace syncline::live {

// How long the ranks of one gathering may be apart, where that is without limit.
inline constexpr auto kNoLimit = std::chrono::milliseconds::max();

class Gatherings {
 public:
  explicit Gatherings(int ranks) : ranks_(static_cast<std::size_t>(ranks)) { begin(); }

  // Whether a value of this rank for gathering `number` has its place now. Nobody comes to the next
  // one before all have come to this one, and nobody twice.
  bool expects(std::uint64_t number, int rank) const;
  std::uint64_t number() const { return number_; }
  // A rank's value for the gathering that is under way, and how long that rank lets the others be
  // away; the longest of these counts. Gives all values, by rank, once the last one has come.
  std::optional<std::vector<std::string>> add(int rank, std::string value,
                                              std::chrono::milliseconds patience);

  // Why the gathering will not be completed: a missing rank is no longer `connected`, or has been
  // waited for longer than the gathering's patience, or than `timeout` if that is more. Nothing
  // while all may still come.
  std::optional<std::string> failure(LiveClock::time_point now, std::chrono::milliseconds timeout,
                                     const std::function<bool(std::size_t)>& connected) const;

 private:
  void begin();

  std::size_t ranks_;
  std::uint64_t number_ = 0;  // of the one under way, or to come next
  std::vector<std::string> values_;
  std::vector<char> here_;
  bool begun_ = false;
  LiveClock::time_point since_;
  std::chrono::milliseconds patience_{0};
};

}  // namespace syncline::live
