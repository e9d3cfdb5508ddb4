// The duration of a round of a collective once every rank's rounds take equally long.
//
// Example: a ring of 1,024 ranks on shared uplinks. Round 0 takes some ranks 6 us longer than
// others; the difference halves about every ten rounds. After 150 of the 2,046 rounds it is a
// millionth of a round: what happens from here on repeats.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/units.h"

namespace syncline::sim {

class Pace {
 public:
  // Expects the first round of each rank to begin now.
  void begin(int ranks, Seconds now) {
    ranks_.assign(index(ranks), {now});
    streak_ = {};
  }

  // True between begin() and the round that found the pace.
  bool sought() const { return !ranks_.empty(); }

  // Notes that the rank's round ends now. Returns true once the last rounds of all ranks took
  // equally long, and no other round ended since the first of these.
  bool end_round(int rank, Seconds now) {
    Rank& r = ranks_[index(rank)];
    const Seconds length = now - std::exchange(r.began, now);
    if (std::abs(length - streak_.first) > kEqual * length) {
      streak_ = {.number = streak_.number + 1, .first = length};
    }
    streak_.sum += length;
    ++streak_.rounds;
    if (std::exchange(r.streak, streak_.number) != streak_.number) r.rounds = 0;
    if (++r.rounds == kEnough) ++streak_.ranks;
    if (index(streak_.ranks) < ranks_.size()) return false;
    ranks_.clear();
    return true;
  }

  // Returns the mean duration of the rounds that took equally long.
  Seconds mean() const { return streak_.sum / streak_.rounds; }

 private:
  static constexpr int kEnough = 3;       // rounds of each rank
  static constexpr double kEqual = 1e-6;  // relative difference

  struct Rank {
    Seconds began = 0;  // of the current round
    int streak = -1;    // number of the last
    int rounds = 0;     // of the rank in it
  };
  // Rounds of any ranks that ended one after the other and took equally long.
  struct Streak {
    int number = 0;
    Seconds first = 0;  // duration of its first round
    Seconds sum = 0;
    int rounds = 0;
    int ranks = 0;  // with enough rounds
  };
  std::vector<Rank> ranks_;
  Streak streak_;
};

}  // namespace syncline::sim
