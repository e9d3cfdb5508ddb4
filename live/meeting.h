// The meeting of a live run's ranks on their control channel: each calls rank 0 and gives its rank;
// rank 0 welcomes all once all have come, or refuses all.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "live/messenger.h"
#include "live/peers.h"
#include "live/rank_environment.h"
#include "live/rendezvous.h"
#include "live/socket.h"

namespace syncline::live {

// Owns this rank's connection to the others, and the outcome of its meeting with them.
class Meeting {
 public:
  // Opens the rendezvous, or prepares the call. `key`: a value that all ranks must share.
  Meeting(const RankEnvironment& environment, std::string key, std::chrono::milliseconds timeout);

  // Opens the messenger over which the ranks meet.
  std::unique_ptr<Messenger> open_messenger() const;

  bool is_done() const { return met_; }
  // Returns the reason why the ranks cannot meet any more; null: they still can, or have met.
  const std::exception_ptr& failure() const { return failure_; }
  // Returns the numeric address by which the others reach this rank, once they have met.
  const std::string& own_address() const { return own_address_; }

  // Does the work that is due: rank 0 ends the meeting or waits on, other ranks call it.
  void attend(Peers& peers);
  // Takes the outcome of a call to rank 0.
  void take_event(LineEvent event, Peers& peers);
  // Takes a caller in, or refuses it. For rank 0. Requires that the caller has proved its token.
  void take_hello(const Message& hello, Peers& peers);
  // Takes rank 0's welcome or refusal. Returns false for other messages. For other ranks.
  bool take_answer(const Message& message, Peers& peers);
  // Ends the meeting. `first_hand`: no other rank reports this failure.
  void fail(const std::string& text, bool first_hand, Peers& peers);

 private:
  void give_up(const std::string& text, bool first_hand);
  void refuse_all(const std::string& text, Peers& peers);
  void receive(Peers& peers);
  void call(Peers& peers);
  void end(Peers& peers);

  const RankEnvironment& environment_;
  std::string key_;
  std::chrono::milliseconds timeout_;
  LiveClock::time_point deadline_;
  std::unique_ptr<OpenRendezvous> rendezvous_;  // of rank 0
  std::unique_ptr<FirstRank> first_;            // of the others
  std::string own_address_ = kLoopback;
  bool met_ = false;
  std::exception_ptr failure_;
  std::string refusal_;                 // why the run cannot take place; empty: it can
  std::optional<FirstAddress> called_;  // the last called address of rank 0
  LiveClock::time_point called_since_;
  std::optional<LiveClock::time_point> reached_;  // when a listener was found there
  bool refused_ = false;                          // the listener does not know the token
};

}  // namespace syncline::live
