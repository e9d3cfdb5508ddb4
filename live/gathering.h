// Gatherings of one value from every rank: rank 0 receives the values and sends all of them to all.
// The n-th gathering of one rank is the n-th of every other.
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

// Owns the values of the current gathering.
class Gathering {
 public:
  // Prepares gatherings. `patient`: the wait_limit of a rank that waits for ever.
  Gathering(const RankEnvironment& environment, std::chrono::milliseconds patient);

  // Gives this rank's value. `wait_limit`: how much later the others may come. Throws MachineError
  // if the value is longer than kMaxValue.
  void give(const std::string& mine, std::chrono::milliseconds wait_limit, Peers& peers);
  bool complete() const { return gathered_.has_value(); }
  // Returns the values of all ranks, by rank. Requires that the gathering is complete.
  std::vector<std::string> take_values() { return std::move(*gathered_); }
  // Refuses all further completions: no rank may go on after a failure.
  void stop() { stopped_ = true; }

  // Returns how the sender broke the protocol, or nullopt. `met`: the ranks have met.
  std::optional<std::string> take_piece(Peer& peer, const std::string& bytes) const;
  std::optional<std::string> take_share(Peer& peer, const Message& share, bool met, Peers& peers);
  std::optional<std::string> take_all(Peer& first, const Message& all);

  // Returns which rank the others wait for that has ended or is later than the time limit, or
  // nullopt. For rank 0.
  std::optional<std::string> find_missing(const Peers& peers,
                                          std::chrono::milliseconds timeout) const;

 private:
  void add(int rank, std::string value, std::chrono::milliseconds wait_limit, Peers& peers);

  int rank_;  // of this process
  int ranks_;
  std::chrono::milliseconds patient_;
  std::size_t most_;          // bytes of a value that one peer gives
  std::uint64_t number_ = 0;  // the current gathering, or the next
  bool stopped_ = false;
  std::map<int, std::string> values_;  // on rank 0: values that have come, by rank
  LiveClock::time_point first_came_;   // the first of them
  std::chrono::milliseconds wait_limit_{0};
  bool awaits_all_ = false;  // rank 0 owes this rank all values
  std::optional<std::vector<std::string>> gathered_;
};

}  // namespace syncline::live
