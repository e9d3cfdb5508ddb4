// How the ranks of a live run find each other: rank 0 listens and publishes its address, in a file
// or over MPI (RankEnvironment says which), and the other ranks wait until they can read it. Where
// a launcher gave all ranks the address, rank 0 listens there and nothing is published.
#pragma once

#include <chrono>
#include <string>

#include "core/error.h"
#include "live/rank_environment.h"
#include "live/socket.h"

namespace syncline::live {

// The ranks did not get together. `first_hand`: no other rank reports this failure.
struct RendezvousError : MachineError {
  RendezvousError(const std::string& text, bool first) : MachineError(text), first_hand(first) {}
  bool first_hand;
};

struct HostAddress {
  std::string host;
  int port = 0;
};

// Rank 0's side: the listening socket. While this lives its address is published.
class OpenRendezvous {
 public:
  // Throws RendezvousError where another rank 0 is there already, MachineError where the file
  // cannot be written, InputError where it holds anything else than such an address. A file that a
  // killed run left behind is replaced.
  explicit OpenRendezvous(const RankEnvironment& environment);
  ~OpenRendezvous();
  OpenRendezvous(const OpenRendezvous&) = delete;
  OpenRendezvous& operator=(const OpenRendezvous&) = delete;
  Socket& listener() { return listener_; }

 private:
  Socket listener_;  // its user may take it away
  int port_;
  std::string file_;  // published in; empty: not in a file
};

// The other ranks' side: where rank 0 listens, as soon as it is published. `timeout` is how long
// `deadline` was away. Throws RendezvousError where nothing was published by `deadline`.
HostAddress find_first(const RankEnvironment& environment, LiveClock::time_point deadline,
                       std::chrono::milliseconds timeout);

}  // namespace syncline::live
