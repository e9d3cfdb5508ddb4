// The control channel of a live run: a connection from every rank to rank 0. Over it, ranks
// exchange small values, compare clocks, and learn at once if one of them has failed. Training data
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

// An exchange with other ranks broke off, most likely because one of them is gone.
struct PeerError : MachineError {
  using MachineError::MachineError;
};

struct ControlChannelSettings {
  std::chrono::milliseconds timeout{60000};
  // Value that must be the same on all ranks, such as a fingerprint of the scenario.
  std::string key;
  // Receives the failure of a rank once, from the channel's own thread. `first_hand`: this rank has
  // to report the failure (rank 0, or rank 1 if rank 0 is gone). Empty: the next call of the
  // channel throws.
  std::function<void(const std::string& text, bool first_hand)> on_failure;
};

// The difference of this rank's clock to rank 0's.
struct ClockOffset {
  Seconds add = 0;    // rank 0's time minus this rank's
  Seconds error = 0;  // at most, either way: half of the quickest exchange
};

class ControlChannel {
 public:
  // Waits until all ranks have joined. Throws RendezvousError if a rank never joined (it is named),
  // was started twice, for another number of ranks or with another key.
  ControlChannel(const RankEnvironment& environment, ControlChannelSettings settings);
  // Says goodbye, so that the others do not take it for a failure.
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  int rank() const { return environment_.rank; }
  int ranks() const { return environment_.ranks; }
  std::chrono::milliseconds timeout() const { return settings_.timeout; }
  // Returns the address by which the other ranks reach this one.
  const std::string& own_address() const;
  // Throws MachineError: a rank broke the protocol. It names the rank, and its address if that is
  // known here.
  [[noreturn]] void broken_by(int rank, const std::string& what) const;

  // A wait_limit without end: one of the ranks has long work to do before it comes.
  static constexpr auto kPatient = std::chrono::milliseconds::max();
  // Returns the values of all ranks, by rank; a value has at most kMaxValue bytes. The n-th call
  // on one rank meets the n-th on every other. `wait_limit`: how much later the others may come, at
  // least the time limit. Throws MachineError that names the failed rank.
  std::vector<std::string> gather(
      const std::string& mine, std::chrono::milliseconds wait_limit = std::chrono::milliseconds(0));
  void barrier(std::chrono::milliseconds wait_limit = std::chrono::milliseconds(0));
  // Returns rank 0's value, on every rank.
  std::string from_first(const std::string& mine,
                         std::chrono::milliseconds wait_limit = std::chrono::milliseconds(0));

  // Throws MachineError if a rank is known to have failed. Sends no message and does not wait: for
  // loops that wait for something else.
  void check() const;

  // Returns LiveClock::now() since its epoch, in seconds.
  static Seconds now();
  // Measures the offset anew, from 40 exchanges with rank 0. Not a collective call.
  ClockOffset clock();

  // Time after a PeerError until it is known which rank is gone.
  static constexpr auto kSuspicion = std::chrono::milliseconds(3000);
  // Reports that this rank is about to end because of `text`. If another rank's failure is known,
  // or becomes known within `suspicion`, it is the cause and is thrown. Otherwise all others are
  // told, and the call returns.
  void fail(const std::string& text,
            std::chrono::milliseconds suspicion = std::chrono::milliseconds(0));

 private:
  class Life;
  RankEnvironment environment_;
  ControlChannelSettings settings_;
  std::unique_ptr<Life> life_;
};

// Returns a connection to every other rank, by rank (none to itself), for libraries that do not
// authenticate their peers. A collective call. The ranks exchange over the channel the addresses
// and ports that they call from, and accept no others: each end is that rank of this run. The
// connections are unused. Throws PeerError if a rank cannot be reached within the time limit, else
// MachineError: ranks that the channel knows to be gone.
std::vector<Socket> connect_pairs(ControlChannel& channel);

}  // namespace syncline::live
