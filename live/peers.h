// The other ranks, as the control channel knows them: rank 0 knows all others, each of them knows
// only rank 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "live/messenger.h"
#include "live/rank_environment.h"
#include "live/socket.h"

namespace syncline::live {

// Longest time between heartbeats; at least four are sent within the time limit.
inline constexpr std::chrono::milliseconds kHeartbeatEvery{250};

struct Peer {
  enum class State { kAbsent, kHere, kGone };
  State state = State::kAbsent;
  std::string id = {};   // connection, as the messenger names it; empty: rank 0's
  std::string end = {};  // address and port
  LiveClock::time_point heard = LiveClock::now();
  bool lost = false;        // the connection is gone
  std::string pieces = {};  // begin of its current value
};

// Returns the sentence that a rank broke the protocol. `end`: its address and port, if known.
std::string broken_text(int rank, const std::string& end, const std::string& what);

// Owns the connections with the other ranks, and the time at which each was heard last.
class Peers {
 public:
  Peers(const RankEnvironment& environment, std::unique_ptr<Messenger> messenger);

  Messenger& messenger() { return *messenger_; }
  // Returns the peers by rank on rank 0, itself among them; elsewhere rank 0 only.
  std::vector<Peer>& all() { return peers_; }
  const std::vector<Peer>& all() const { return peers_; }
  Peer& first() { return peers_.front(); }
  int rank_of(const Peer& peer) const { return static_cast<int>(&peer - peers_.data()); }
  // Returns the sender of a message; null: it does not take part.
  Peer* sender(const Message& message);

  void send(Peer& peer, MessageKind kind, std::uint64_t number = 0, const std::string& bytes = "");
  void send_all(MessageKind kind, std::uint64_t number = 0, const std::string& bytes = "");
  // Sends a value in pieces, the last one after `head`.
  void send_value(Peer& peer, MessageKind kind, std::uint64_t number, const std::string& head,
                  const std::string& value);
  // Sends a heartbeat, unless the last one is younger than `every`.
  void heartbeat(std::chrono::milliseconds every);
  // Waits for messages, for the next heartbeat, or until `wake` can be read.
  void wait(int wake, std::chrono::milliseconds most) const;

  // Notes that a connection is gone.
  void take_closed();
  // Takes a message, and ignores it unless it is a goodbye.
  void take_goodbye(const Message& message);
  bool any_hears() const;
  // Counts silence from now on.
  void hear_all();
  // Returns the first new failure as a sentence, or nullopt.
  std::optional<std::string> find_unread();
  std::optional<std::string> find_lost(bool met);
  std::optional<std::string> find_silent(std::chrono::milliseconds timeout);

 private:
  bool is_first_;  // this rank is rank 0
  std::unique_ptr<Messenger> messenger_;
  std::vector<Peer> peers_;
  std::optional<std::string> unread_;  // sentence on a rank that does not read its answers
  LiveClock::time_point next_heartbeat_ = LiveClock::now();
  LiveClock::time_point looked_ = LiveClock::now();  // last search for silent ranks
};

}  // namespace syncline::live
