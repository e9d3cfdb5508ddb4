#include "live/gathering.h"

#include <algorithm>

#include "live/rank_text.h"

namespace syncline::live {

std::optional<std::vector<std::string>> Gatherings::add(std::uint64_t number, int rank,
                                                        const std::string& value,
                                                        std::chrono::milliseconds patience) {
  const auto [it, begins] = under_way_.try_emplace(number);
  Gathering& gathering = it->second;
  if (begins) {
    gathering.values.resize(ranks_);
    gathering.here.assign(ranks_, 0);
  }
  gathering.patience = std::max(gathering.patience, patience);
  gathering.values[static_cast<std::size_t>(rank)] = value;
  gathering.here[static_cast<std::size_t>(rank)] = 1;
  if (std::count(gathering.here.begin(), gathering.here.end(), 0) > 0) return std::nullopt;
  std::vector<std::string> values = std::move(gathering.values);
  under_way_.erase(it);
  return values;
}

std::optional<std::string> Gatherings::failure(
    LiveClock::time_point now, std::chrono::milliseconds timeout,
    const std::function<bool(std::size_t)>& connected) const {
  for (const auto& [number, gathering] : under_way_) {
    for (std::size_t r = 1; r < ranks_; ++r) {
      if (gathering.here[r] != 0 || connected(r)) continue;
      return rank_text(static_cast<int>(r)) + " ended before the others";
    }
    if (gathering.patience == kNoLimit) continue;
    const auto limit = std::max(gathering.patience, timeout);
    if (now - gathering.begun < limit) continue;
    return missing_ranks_text(gathering.here) + " did not reach the barrier within " +
           limit_text(limit);
  }
  return std::nullopt;
}

}  // namespace syncline::live
