// The rendezvous of a live run's ranks: rank 0 listens and publishes its address and the run's
// token, in a file or over MPI (see RankEnvironment). The other ranks wait until they can read it.
// If a launcher gave all ranks the address, rank 0 listens there and does not publish it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "live/rank_environment.h"
#include "live/socket.h"

namespace syncline::live {

// The ranks could not meet. `first_hand`: no other rank reports this failure.
struct RendezvousError : MachineError {
  RendezvousError(const std::string& text, bool first) : MachineError(text), first_hand(first) {}
  bool first_hand;
};

struct FirstAddress {
  std::string host;
  int port = 0;
  std::string token;
  bool operator==(const FirstAddress&) const = default;
};

// Owns rank 0's listening socket, and its published address while this lives.
class OpenRendezvous {
 public:
  // Publishes the address. Throws RendezvousError if there is another rank 0, MachineError if the
  // file cannot be written, InputError if it holds other content than an address. The file of a
  // killed run is replaced.
  explicit OpenRendezvous(const RankEnvironment& environment);
  ~OpenRendezvous();
  OpenRendezvous(const OpenRendezvous&) = delete;
  OpenRendezvous& operator=(const OpenRendezvous&) = delete;
  const Socket& listener() const { return listener_; }
  const std::string& token() const { return token_; }
  // Stops listening once all ranks have met.
  void close() { stop_listening(listener_); }

 private:
  Socket listener_;
  std::string token_;
  std::string line_;  // the published line
  std::string file_;  // path of the file; empty: none
  Socket lock_;       // the file, locked
};

// Finds rank 0's address for the other ranks.
class FirstRank {
 public:
  // Prepares the search. Under mpirun a collective call, to which rank 0 brings its address.
  explicit FirstRank(const RankEnvironment& environment);
  // Returns the currently published address; nullopt if there is none yet. Throws MachineError if
  // the file could be another user's work.
  std::optional<FirstAddress> now();
  // Returns true if the published address is known to be of a living rank 0.
  bool lives() const;
  // Returns the place of the search, for the text of a failure.
  std::string where() const;

 private:
  const RankEnvironment& environment_;
  std::optional<FirstAddress> found_;
};

}  // namespace syncline::live
