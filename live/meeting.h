// The ranks of a live run in contact: a line from every rank to rank 0, over which they exchange
// small values, compare clocks, and learn at once when one of them is gone. Training data never
// travels here.
//
// Every process sends a sign of life some times a second. A rank whose line breaks, or that is
// silent for the time limit, has failed; rank 0 tells all others which one. A rank that waits in
// `gather` for one that is alive but does not come fails after the time limit too.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/units.h"
#include "live/rank_environment.h"
#include "live/socket.h"

namespace syncline {

// The ranks have not met. `first_hand`: nobody else says so.
struct NotMet : MachineError {
  NotMet(const std::string& text, bool first) : MachineError(text), first_hand(first) {}
  bool first_hand;
};

// An exchange with other ranks broke off. That one of them is gone is the likeliest cause.
struct PeerError : MachineError {
  using MachineError::MachineError;
};

struct MeetingSettings {
  std::chrono::milliseconds timeout{60000};
  // What all ranks must have been started with alike, e.g. a fingerprint of the scenario.
  std::string key;
  // Called once, from the meeting's own thread, when a rank has failed. `first_hand`: nobody else
  // will say so (rank 0, or rank 1 where rank 0 is gone); the others need not repeat it. Empty: the
  // next call of the meeting throws.
  std::function<void(const std::string& text, bool first_hand)> on_failure;
};

// This rank's clock against rank 0's.
struct ClockOffset {
  Seconds add = 0;    // to a time here, for rank 0's
  Seconds error = 0;  // at most, either way: half of the quickest exchange
};

class Meeting {
 public:
  // Waits for all ranks; returns once each has come. Throws NotMet: a rank that never came (named),
  // one started twice, one started for another number of ranks or with another key.
  Meeting(const RankEnvironment& place, MeetingSettings settings);
  // Leaves in order: the others do not take it for a failure.
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  int rank() const { return place_.rank; }
  int ranks() const { return place_.ranks; }
  std::chrono::milliseconds timeout() const { return settings_.timeout; }
  // By which the others reach this rank.
  const std::string& own_address() const { return address_; }

  static constexpr auto kPatient = std::chrono::milliseconds::max();
  // Everyone's value, by rank. The n-th call on one rank meets the n-th on every other. `patience`:
  // how long ranks may be apart; kPatient where one of them has long work to do before it comes.
  // Throws MachineError naming the rank that failed.
  std::vector<std::string> gather(
      const std::string& mine, std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  void barrier(std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  // Rank 0's value, everywhere.
  std::string from_first(const std::string& mine,
                         std::chrono::milliseconds patience = std::chrono::milliseconds(0));

  // Throws MachineError where a rank is known to have failed. Sends nothing and waits for nobody:
  // for loops that wait for something else.
  void check() const;

  // Times of LiveClock::now() since its epoch, in seconds.
  static Seconds now();
  // Measured anew with each call, from some dozens of exchanges with rank 0. No collective call.
  ClockOffset clock();

  // How long after a PeerError it is known who is gone.
  static constexpr auto kSuspicion = std::chrono::milliseconds(3000);
  // This rank is about to end for `text`. If another's failure is known, or becomes so within
  // `suspicion`, that is the cause and is thrown; else all others are told, and it returns.
  void fail(const std::string& text,
            std::chrono::milliseconds suspicion = std::chrono::milliseconds(0));

 private:
  class Lines;
  RankEnvironment place_;
  MeetingSettings settings_;
  std::string address_;
  std::unique_ptr<Lines> lines_;
};

// Over MPI, where this program was built with it: rank 0's text on every rank. Throws MachineError
// otherwise, and where MPI fails.
std::string mpi_from_first(const std::string& mine);

}  // namespace syncline
