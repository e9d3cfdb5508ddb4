// Gatherings of one value from every rank: rank 0 takes them from all and sends all of them to
// everyone. The n-th gathering of one rank is the n-th of every other.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "live/messenger.h"
#include "live/peers.h"
#include "live/rank_environment.h"
#include "live/socket.h"

namespace syncline::live {

// Owns the values of the gathering that is under way.
class Gathering {
 public:
  // `patient`: the wait limit of a rank that waits for ever.
  Gathering(const RankEnvironment& environment, std::chrono::milliseconds patient);

  // Gives this rank's value. `wait limit`: how long the others may be behind it. Throws
  // MachineError where it is longer than kMostValue.
  void give(const std::string& mine, std::chrono::milliseconds wait_limit, Peers& peers);
  bool complete() const { return gathered_.has_value(); }
  // Returns everyone's value, by rank. Requires that the gathering is complete.
  std::vector<std::string> take_values() { return std::move(*gathered_); }
  // Completes no gathering any more: nobody is to go on as if nothing had happened.
  void stop() { stopped_ = true; }

  // Each returns how its sender broke the protocol, or nothing. `met`: the ranks have.
  std::optional<std::string> take_piece(Peer& peer, const std::string& bytes) const;
  std::optional<std::string> take_share(Peer& peer, const Message& share, bool met, Peers& peers);
  std::optional<std::string> take_all(Peer& first, const Message& all);

  // Rank 0: says which rank the others wait for that has ended, or has not come within the time
  // limit, or nothing.
  std::optional<std::string> find_missing(const Peers& peers,
                                          std::chrono::milliseconds timeout) const;

 private:
  void add(int rank, std::string value, std::chrono::milliseconds wait_limit, Peers& peers);

  int rank_;  // this process's
  int ranks_;
  std::chrono::milliseconds patient_;
  std::size_t most_;          // bytes of a value that one peer gives
  std::uint64_t number_ = 0;  // the gathering that is under way, or comes next
  bool stopped_ = false;
  std::map<int, std::string> values_;  // on rank 0, of those who have come, by rank
  LiveClock::time_point first_came_;   // of them
  std::chrono::milliseconds wait_limit_{0};
  bool awaits_all_ = false;  // rank 0 owes this rank all values
  std::optional<std::vector<std::string>> gathered_;
};

}  // namespace syncline::live
