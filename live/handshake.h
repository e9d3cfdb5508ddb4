// Once the ranks have found each other: every rank connects to rank 0 and introduces itself, and
// rank 0 admits them when all have joined, or tells them why they cannot take part.
//
// Who is called says a nonce first; the caller answers with who it is, a nonce of its own and the
// proof that it knows the run's token (live/seal.h). Everything after that is sealed, so that the
// first answer proves the same of the one that was called.
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

// How long a caller may take to introduce itself, and whoever is called to say its nonce.
inline constexpr std::chrono::milliseconds kIntroduction{3000};

// Those who have connected and not introduced themselves yet. They may be strangers: nobody waits
// for them, few of their bytes are kept, only so many are held, and after some seconds they are
// dropped. Who does not know the token is turned away without a word.
class Callers {
 public:
  Callers(std::string token, int ranks);
  // Accepts those who wait, without waiting itself. Where there are too many, the oldest go.
  void accept_from(const Socket& listener);
  void add_awaited(std::vector<pollfd>& waiting) const;
  // Hands those who have proved what they say to `admit`, which may move their connection away,
  // and forgets them.
  void hear(const std::function<void(const Introduction&, Connection&)>& admit);
  // For the words of a failure: how many were turned away, and who was the last; or nothing.
  std::string turned_away() const;

 private:
  struct Caller {
    Connection connection;
    std::string nonce;
    LiveClock::time_point until;
  };
  bool hear_one(Caller& caller, const std::function<void(const Introduction&, Connection&)>& admit);
  void drop_oldest();

  std::string token_;
  int ranks_;
  std::vector<Caller> callers_;
  int dropped_ = 0;
  std::string last_dropped_;
};

// The caller's side: waits for the nonce, introduces itself and gives the first answer, which is a
// welcome or a refusal, by `until`. Nothing where the other side says none, or does not know the
// token; `challenged`: it has begun as a rank would.
std::optional<Frame> introduce(Connection& connection, const std::string& token,
                               const Introduction& who, LiveClock::time_point until,
                               bool& challenged);

// Rank 0 gives by rank, none for itself; the others give their one to rank 0.
struct Admission {
  std::vector<Connection> connections;
  std::string own_address;  // by which the other ranks reach this one
  std::string token;
};

// Rank 0: waits until all ranks have joined and admits them. Throws RendezvousError where some did
// not within `timeout`, or one was started for another number of ranks or with another key; all who
// are there, or come in the next seconds, are told.
Admission receive_all(const Socket& listener, const RankEnvironment& environment,
                      const std::string& token, const std::string& key,
                      std::chrono::milliseconds timeout);

// Every other rank: connects to rank 0 and waits to be admitted, which may take until the last rank
// has joined. Throws RendezvousError where rank 0 does not listen by `deadline` (which was
// `timeout` away), ends, or refuses this rank.
Admission call_first(FirstRank& first, const RankEnvironment& environment, const std::string& key,
                     LiveClock::time_point deadline, std::chrono::milliseconds timeout);

}  // namespace syncline::live
