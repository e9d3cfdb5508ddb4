// Rank 0's account of the gatherings that are under way: whose values have come, and whether the
// others may still be waited for.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "live/socket.h"

namespace syncline::live {

// How long the ranks of one gathering may be apart, where that is without limit.
inline constexpr auto kNoLimit = std::chrono::milliseconds::max();

class Gatherings {
 public:
  explicit Gatherings(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  // A rank's value for gathering `number`, and how long that rank lets the others be away; the
  // longest of these counts. Gives all values, by rank, once the last one has come.
  std::optional<std::vector<std::string>> add(std::uint64_t number, int rank,
                                              const std::string& value,
                                              std::chrono::milliseconds patience);

  // Why a gathering will not be completed: a missing rank is no longer `connected`, or has been
  // waited for longer than its gathering's patience, or than `timeout` if that is more. Nothing
  // while all may still come.
  std::optional<std::string> failure(LiveClock::time_point now, std::chrono::milliseconds timeout,
                                     const std::function<bool(std::size_t)>& connected) const;

 private:
  struct Gathering {
    std::vector<std::string> values;
    std::vector<char> here;
    LiveClock::time_point begun = LiveClock::now();
    std::chrono::milliseconds patience{0};
  };
  std::size_t ranks_;
  std::map<std::uint64_t, Gathering> under_way_;
};

}  // namespace syncline::live
