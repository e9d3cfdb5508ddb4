// Ranks and times as the messages of a live run name them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace syncline::live {

// "rank 2".
std::string rank_text(int rank);
// Those whose flag is not set: "rank 2", "ranks 1, 3".
std::string missing_ranks_text(const std::vector<char>& joined);
// "60 s", "0.3 s".
std::string limit_text(std::chrono::milliseconds time);
// To the second process of a rank: the first one goes on.
std::string started_twice_text(int rank);

}  // namespace syncline::live
