#include "live/gathering.h"

#include <algorithm>
#include <utility>

#include "live/rank_environment.h"

namespace syncline::live {

void Gatherings::begin() {
  values_.assign(ranks_, {});
  here_.assign(ranks_, 0);
  begun_ = false;
  patience_ = std::chrono::milliseconds(0);
}

bool Gatherings::expects(std::uint64_t number, int rank) const {
  return number == number_ && here_[static_cast<std::size_t>(rank)] == 0;
}

std::optional<std::vector<std::string>> Gatherings::add(int rank, std::string value,
                                                        std::chrono::milliseconds patience) {
  if (!std::exchange(begun_, true)) since_ = LiveClock::now();
  patience_ = std::max(patience_, patience);
  values_[static_cast<std::size_t>(rank)] = std::move(value);
  here_[static_cast<std::size_t>(rank)] = 1;
  if (std::count(here_.begin(), here_.end(), 0) > 0) return std::nullopt;
  std::vector<std::string> values = std::move(values_);
  ++number_;
  begin();
  return values;
}

std::optional<std::string> Gatherings::failure(
    LiveClock::time_point now, std::chrono::milliseconds timeout,
    const std::function<bool(std::size_t)>& connected) const {
  if (!begun_) return std::nullopt;
  for (std::size_t r = 1; r < ranks_; ++r) {
    if (here_[r] != 0 || connected(r)) continue;
    return rank_text(static_cast<int>(r)) + " ended before the others";
  }
  if (patience_ == kNoLimit) return std::nullopt;
  const auto limit = std::max(patience_, timeout);
  if (now - since_ < limit) return std::nullopt;
  return missing_ranks_text(here_) + " did not reach the barrier within " + limit_text(limit);
}

}  // namespace syncline::live
