// The moment from which a collective with equal rounds repeats itself, round after round.
//
// Example: a ring of 1,024 ranks on shared uplinks. Round 0 takes some ranks 6 us longer than
// others; the difference halves about every ten rounds. After 130 of the 2,046 rounds every event
// is as long after that of the last round as any other, to a hundred-thousandth of a round.
#pragma once

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/units.h"

namespace syncline::sim {

class Pace {
 public:
  // Events at a rank: a round ends, a message to it sets out, is off the wire, arrives.
  enum Event : int { kRound, kSetOut, kOffWire, kArrival, kEvents };

  // Begins to look, at the begin of all ranks' first rounds. `messages`: by rank, those to it in
  // each round. `memory`: the longest time that a message is on its way once it is off the wire.
  void begin(std::vector<int> messages, Seconds memory, Seconds now) {
    Rank rank;
    rank.known.fill(now);
    ranks_.assign(messages.size(), rank);
    messages_ = std::move(messages);
    memory_ = memory;
    alike_ = 0;
    ends_ = false;
  }

  bool looks() const { return !ranks_.empty(); }
  void stop() { ranks_.clear(); }

  // Returns the duration of a round, the mean of the last.
  Seconds round() const { return sum_ / alike_; }

  // Notes an event. Returns true once each event at any rank in the last rounds of rank 0 happened
  // one round after the same event of the round before.
  bool note(Event event, int rank, Seconds now) {
    const Seconds since = now - ended_;
    const bool over = ends_ && since > kEqual * (ended_ - ranks_.front().known[kRound]);
    const bool repeats = over && compare_rounds();
    if (over) ends_ = false;
    Rank& r = ranks_[index(rank)];
    ++r.counts[event];
    r.lasts[event] = now;
    if (event == kRound && rank == 0) {
      ends_ = true;
      ended_ = now;
    }
    return repeats;
  }

 private:
  static constexpr int kEnough = 3;       // rounds, and those that memory covers
  static constexpr double kEqual = 1e-5;  // share of a round

  struct Rank {
    std::array<int, kEvents> counts{};     // since the last round of rank 0
    std::array<Seconds, kEvents> lasts{};  // time of the last event
    std::array<Seconds, kEvents> known{};  // the same at the last round of rank 0
  };

  // Compares all events since the last comparison with those before, at the end of rank 0's round.
  bool compare_rounds() {
    const Seconds round = ended_ - ranks_.front().known[kRound];
    bool same = true;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      Rank& r = ranks_[rank];
      for (int event = 0; event < kEvents; ++event) {
        const int expected = event == kRound ? 1 : messages_[rank];
        const Seconds off = r.lasts[event] - r.known[event] - round;
        same = same && r.counts[event] == expected &&
               (expected == 0 || std::abs(off) <= kEqual * round);
      }
      r.counts = {};
      r.known = r.lasts;
    }
    alike_ = same ? alike_ + 1 : 0;
    sum_ = same ? sum_ + round : 0;
    return alike_ >= kEnough + memory_ / round;
  }

  std::vector<Rank> ranks_;  // empty: does not look
  std::vector<int> messages_;
  Seconds memory_ = 0;
  bool ends_ = false;  // rank 0's round has ended, other events of that moment may follow
  Seconds ended_ = 0;
  int alike_ = 0;    // last rounds of rank 0 that were like those before
  Seconds sum_ = 0;  // of their durations
};

}  // namespace syncline::sim
