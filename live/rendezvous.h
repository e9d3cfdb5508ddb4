// How the ranks of a live run find each other: rank 0 listens and publishes its address and the
// run's token, in a file or over MPI (RankEnvironment says which), and the other ranks wait until
// they can read it. Where a launcher gave all ranks the address, rank 0 listens there and nothing
// is published.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "live/rank_environment.h"
#include "live/socket.h"

namespace syncline::live {

// The ranks did not get together. `first_hand`: no other rank reports this failure.
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

// Rank 0's side: the listening socket, and what is published of it while this lives.
class OpenRendezvous {
 public:
  // Throws RendezvousError where another rank 0 is there already, MachineError where the file
  // cannot be written, InputError where it holds anything else than such an address. A file that a
  // killed run left behind is replaced.
  explicit OpenRendezvous(const RankEnvironment& environment);
  ~OpenRendezvous();
  OpenRendezvous(const OpenRendezvous&) = delete;
  OpenRendezvous& operator=(const OpenRendezvous&) = delete;
  const Socket& listener() const { return listener_; }
  const std::string& token() const { return token_; }
  // All ranks have met: nobody else is heard.
  void close() { stop_listening(listener_); }

 private:
  Socket listener_;
  std::string token_;
  std::string line_;  // what is published
  std::string file_;  // in which; empty: not in a file
  Socket lock_;       // the file, locked
};

// The other ranks' side: where rank 0 listens.
class FirstRank {
 public:
  // Under mpirun a collective call, which rank 0 makes with its address.
  explicit FirstRank(const RankEnvironment& environment);
  // What is published now; nothing where nothing is yet. Throws MachineError where the file could
  // be another user's work.
  std::optional<FirstAddress> now();
  // Returns whether what is published is known to be that of a rank 0 that is alive.
  bool lives() const;
  // For the words of a failure: where it was looked for.
  std::string where() const;

 private:
  const RankEnvironment& environment_;
  std::optional<FirstAddress> found_;
};

}  // namespace syncline::live
