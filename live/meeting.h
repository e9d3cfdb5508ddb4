// How the ranks of a live run meet on their control channel: each calls rank 0 and says who it is;
// rank 0 welcomes all once all are there, or refuses all.
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

// Owns this rank's way to the others, and how its meeting with them ended.
class Meeting {
 public:
  // `key`: what all ranks must have been started with alike.
  Meeting(const RankEnvironment& environment, std::string key, std::chrono::milliseconds timeout);

  // Opens the messenger over which the ranks meet.
  std::unique_ptr<Messenger> open_messenger() const;

  bool met() const { return met_; }
  // Null until the ranks can meet no more.
  const std::exception_ptr& failure() const { return failure_; }
  // Numeric address by which the other ranks reach this one, once they have met.
  const std::string& own_address() const { return own_address_; }

  // Does what is due by now: rank 0 ends the meeting or waits on, any other rank calls it.
  void attend(Peers& peers);
  // Takes what came of a call of rank 0.
  void take_event(LineEvent event, Peers& peers);
  // Rank 0: takes a caller in, or refuses it. It has proved to know the token.
  void take_hello(const Message& hello, Peers& peers);
  // Any other rank: takes rank 0's welcome or refusal. False: it is neither.
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
  std::unique_ptr<OpenRendezvous> rendezvous_;  // rank 0's
  std::unique_ptr<FirstRank> first_;            // the others'
  std::string own_address_ = kLoopback;
  bool met_ = false;
  std::exception_ptr failure_;
  std::string refusal_;                 // why the run cannot take place; empty: it can
  std::optional<FirstAddress> called_;  // rank 0's address, as it was called last
  LiveClock::time_point called_since_;
  std::optional<LiveClock::time_point> reached_;  // when somebody was found to listen there
  bool refused_ = false;                          // who listens there does not know the token
};

}  // namespace syncline::live
