// The control channel of a live run: a connection from every rank to rank 0, over which the ranks
// exchange small values, compare clocks, and learn at once when one of them is gone. Training data
// never travels here.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/units.h"
#include "live/messenger.h"
#include "live/rank_environment.h"
#include "live/rendezvous.h"
#include "live/socket.h"

namespace syncline::live {

// An exchange with other ranks broke off. That one of them is gone is the likeliest cause.
struct PeerError : MachineError {
  using MachineError::MachineError;
};

struct ControlChannelSettings {
  std::chrono::milliseconds timeout{60000};
  // What all ranks must have been started with alike, e.g. a fingerprint of the scenario.
  std::string key;
  // Called once, from the channel's own thread, when a rank has failed. `first_hand`: no other rank
  // reports this failure, so this one is to (rank 0, or rank 1 where rank 0 is gone). Empty: the
  // next call of the channel throws.
  std::function<void(const std::string& text, bool first_hand)> on_failure;
};

// This rank's clock against rank 0's.
struct ClockOffset {
  Seconds add = 0;    // to a time here, for rank 0's
  Seconds error = 0;  // at most, either way: half of the quickest exchange
};

class ControlChannel {
 public:
  // Waits until all ranks have joined. Throws RendezvousError: a rank that never joined (named),
  // one started twice, one started for another number of ranks or with another key.
  ControlChannel(const RankEnvironment& environment, ControlChannelSettings settings);
  // Says goodbye, so that the others do not take it for a failure.
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  int rank() const { return environment_.rank; }
  int ranks() const { return environment_.ranks; }
  std::chrono::milliseconds timeout() const { return settings_.timeout; }
  // By which the other ranks reach this one.
  const std::string& own_address() const;
  // A rank has sent what no rank sends. Throws MachineError, which names it, and where it is as far
  // as that is known here.
  [[noreturn]] void broken_by(int rank, const std::string& what) const;

  // For `wait limit`: one of the ranks has long work to do before it comes.
  static constexpr auto kPatient = std::chrono::milliseconds::max();
  // Everyone's value, by rank; a value has at most kMostValue bytes. The n-th call on one
  // rank meets the n-th on every other. `wait limit`: how long the others may be behind this rank;
  // the time limit, where that is more. Throws MachineError naming the rank that failed.
  std::vector<std::string> gather(
      const std::string& mine, std::chrono::milliseconds wait_limit = std::chrono::milliseconds(0));
  void barrier(std::chrono::milliseconds wait_limit = std::chrono::milliseconds(0));
  // Rank 0's value, on every rank.
  std::string from_first(const std::string& mine,
                         std::chrono::milliseconds wait_limit = std::chrono::milliseconds(0));

  // Throws MachineError where a rank is known to have failed. Sends nothing and waits for nobody:
  // for loops that wait for something else.
  void check() const;

  // Times of LiveClock::now() since its epoch, in seconds.
  static Seconds now();
  // Measured again with each call, from some dozens of exchanges with rank 0. Not a collective
  // call.
  ClockOffset clock();

  // How long after a PeerError it is known which rank is gone.
  static constexpr auto kSuspicion = std::chrono::milliseconds(3000);
  // This rank is about to end because of `text`. If another rank's failure is known, or becomes
  // known within `suspicion`, that is the cause and is thrown; otherwise all others are told, and
  // the call returns.
  void fail(const std::string& text,
            std::chrono::milliseconds suspicion = std::chrono::milliseconds(0));

 private:
  class Life;
  RankEnvironment environment_;
  ControlChannelSettings settings_;
  std::unique_ptr<Life> life_;
};

// Returns a connection between every two ranks, for what moves gradients and knows no
// unauthenticated peers itself. All ranks call this together. Each tells the others over the
// channel from which addresses and ports it will call whom, and hears nobody else: whoever is at
// the other end is that rank of this run. Gives this rank's connections, by rank, none for itself;
// nothing has been said on them. Throws MachineError: PeerError where a rank cannot be reached
// within the channel's time limit, and what the channel knows of ranks that are gone.
std::vector<Socket> connect_pairs(ControlChannel& channel);

}  // namespace syncline::live
