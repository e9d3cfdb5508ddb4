// Once the ranks have found each other: every rank connects to rank 0 and introduces itself, and
// rank 0 admits them when all have joined, or tells them why they cannot take part. Afterwards rank
// 0 goes on answering late callers, such as a rank that was started a second time.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "live/connection.h"
#include "live/rank_environment.h"
#include "live/rendezvous.h"

namespace syncline::live {

// What a rank tells rank 0 of itself. The number of ranks and the key must be rank 0's.
struct Introduction {
  int rank = 0;
  int ranks = 0;
  std::string key;
};

// Those who have connected to rank 0 and not introduced themselves yet. They may be strangers:
// nobody waits for them, few of their bytes are kept, and after some seconds they are dropped.
class Callers {
 public:
  // Accepts a connection if there is one, without waiting.
  void accept_from(const Socket& listener);
  void add_awaited(std::vector<pollfd>& waiting) const;
  // Hands those who have introduced themselves to `admit`, which may move their connection away,
  // and forgets them.
  void hear(const std::function<void(const Introduction&, Connection&)>& admit);

 private:
  struct Caller {
    Connection connection;
    LiveClock::time_point until;
  };
  std::vector<Caller> callers_;
};

// Rank 0 gives by rank, none for itself; the others give their one to rank 0.
struct Admission {
  std::vector<Connection> connections;
  std::string own_address;  // by which the other ranks reach this one
};

// Rank 0: waits until all ranks have joined and admits them. Throws RendezvousError where some did
// not within `timeout`, or one was started for another number of ranks or with another key; all who
// are there, or come in the next seconds, are told.
Admission receive_all(const Socket& listener, const RankEnvironment& environment,
                      const std::string& key, std::chrono::milliseconds timeout);

// Every other rank: connects to rank 0 and waits to be admitted, which may take until the last rank
// has joined. Throws RendezvousError where rank 0 does not listen by `deadline` (which was
// `timeout` away), ends, or refuses this rank.
Admission call_first(const HostAddress& first, const RankEnvironment& environment,
                     const std::string& key, LiveClock::time_point deadline,
                     std::chrono::milliseconds timeout);

}  // namespace syncline::live
