#include "live/rank_text.h"

namespace syncline::live {

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

std::string missing_ranks_text(const std::vector<char>& joined) {
  std::string text;
  int missing = 0;
  for (std::size_t r = 0; r < joined.size(); ++r) {
    if (joined[r] != 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(r);
    ++missing;
  }
  return (missing > 1 ? "ranks " : "rank ") + text;
}

std::string limit_text(std::chrono::milliseconds time) {
  const auto seconds = time.count() / 1000;
  const auto tenths = time.count() % 1000 / 100;
  return std::to_string(seconds) + (time.count() % 1000 != 0 ? "." + std::to_string(tenths) : "") +
         " s";
}

std::string started_twice_text(int rank) {
  return rank_text(rank) + " was started twice; this one ends";
}

}  // namespace syncline::live
