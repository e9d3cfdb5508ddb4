#include "live/handshake.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <thread>
#include <utility>

#include "core/visible.h"
#include "live/rank_environment.h"

namespace syncline::live {
namespace {

using std::chrono::milliseconds;

// Whole, and nothing else.
std::optional<int> number_in(const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

// Of those who have proved that they know the token.
std::optional<Introduction> proved(const Frame& frame, const std::string& token,
                                   const std::string& nonce, std::string& nonce_of_caller) {
  const auto parts = split(frame.bytes);
  if (parts.size() != 5 || parts[3].size() != kNonceBytes) return std::nullopt;
  const auto rank = number_in(parts[0]);
  const auto ranks = number_in(parts[1]);
  if (!rank || !ranks) return std::nullopt;
  const Introduction who{*rank, *ranks, parts[2]};
  nonce_of_caller = parts[3];
  if (!same_bytes(proof_of(token, who, nonce, nonce_of_caller), parts[4])) return std::nullopt;
  return who;
}

// Rank 0 while the others join.
class Reception {
 public:
  Reception(const Socket& listener, const RankEnvironment& environment, const std::string& token,
            const std::string& key, milliseconds timeout)
      : listener_(listener),
        environment_(environment),
        token_(token),
        key_(key),
        timeout_(timeout),
        deadline_(LiveClock::now() + timeout),
        connections_(static_cast<std::size_t>(environment.ranks)),
        joined_(connections_.size(), 0),
        callers_(token, environment.ranks) {
    joined_[0] = 1;
  }

  Admission run() {
    while (!all_joined() && LiveClock::now() < deadline_) {
      wait();
      callers_.accept_from(listener_);
      callers_.hear(
          [this](const Introduction& who, Connection& connection) { consider(who, connection); });
      drop_ended();
    }
    if (!all_joined()) {
      refuse_all(missing_ranks_text(joined_) + " did not join within " + limit_text(timeout_) +
                 callers_.turned_away());
    }
    if (!refusal_.empty()) {
      close_after_sending(connections_);
      throw RendezvousError(refusal_, true);
    }
    return admit_all();
  }

 private:
  bool all_joined() const { return std::count(joined_.begin(), joined_.end(), 0) == 0; }

  void wait() {
    std::vector<pollfd> waiting{{listener_.fd(), POLLIN, 0}};
    callers_.add_awaited(waiting);
    for (const auto& connection : connections_) {
      if (connection) waiting.push_back(connection.awaited());
    }
    wait_for_events(waiting, time_until(deadline_));
  }

  // The run cannot take place. Those who have joined are told now, those who are still to come when
  // they do.
  void refuse_all(const std::string& text) {
    if (!refusal_.empty()) return;
    refusal_ = text.substr(0, kMostText);
    for (auto& connection : connections_) connection.send(FrameKind::kRefuse, 0, refusal_);
    deadline_ = std::min(deadline_, LiveClock::now() + kIntroduction);
  }

  void consider(const Introduction& who, Connection& connection) {
    if (who.ranks != environment_.ranks) {
      refuse_all(rank_text(who.rank) + " was started for " + std::to_string(who.ranks) +
                 " ranks, rank 0 for " + std::to_string(environment_.ranks));
    } else if (who.key != key_) {
      refuse_all(rank_text(who.rank) +
                 " was started with another scenario or other options than rank 0");
    }
    const auto r = static_cast<std::size_t>(who.rank);
    const bool twice = r >= joined_.size() || joined_[r] != 0;
    if (!refusal_.empty()) {
      connection.send(FrameKind::kRefuse, 0, refusal_);
    } else if (twice) {
      connection.send(FrameKind::kRefuse, 1, started_twice_text(who.rank));
    }
    if (twice) return;
    joined_[r] = 1;
    connection.inbox.expect("", environment_.ranks);  // it waits, as all do
    connections_[r] = std::move(connection);
  }

  void drop_ended() {
    for (std::size_t r = 1; r < connections_.size(); ++r) {
      Connection& connection = connections_[r];
      if (!connection) continue;
      const bool there = connection.inbox.read(connection.socket.fd());
      connection.inbox.next();
      if (there && connection.inbox.wrong().empty()) continue;
      connection = Connection();
      refuse_all(rank_text(static_cast<int>(r)) + " ended before all ranks had joined");
    }
  }

  Admission admit_all() {
    // Ranks on other machines reach this one by an address that is not the loopback.
    std::string address = kLoopback;
    for (auto& connection : connections_) {
      if (!connection) continue;
      const std::string own = own_address(connection.socket);
      if (own.rfind("127.", 0) != 0) address = own;
      connection.send(FrameKind::kWelcome);
    }
    return {std::move(connections_), address, token_};
  }

  const Socket& listener_;
  const RankEnvironment& environment_;
  const std::string& token_;
  const std::string& key_;
  const milliseconds timeout_;
  LiveClock::time_point deadline_;
  std::vector<Connection> connections_;  // by rank
  std::vector<char> joined_;             // by rank
  Callers callers_;
  std::string refusal_;  // why the run cannot take place; empty: it can
};

}  // namespace

Callers::Callers(std::string token, int ranks) : token_(std::move(token)), ranks_(ranks) {}

void Callers::drop_oldest() {
  last_dropped_ = other_end(callers_.front().connection.socket);
  ++dropped_;
  callers_.erase(callers_.begin());
}

void Callers::accept_from(const Socket& listener) {
  // All ranks may call at once. A rank that goes in a flood of strangers calls again; it is heard
  // at least once before those behind it can have pushed it out.
  const std::size_t most = 64 + static_cast<std::size_t>(ranks_);
  for (std::size_t i = 0; i < most / 2; ++i) {
    bool exhausted = false;
    Caller caller{{}, random_bytes(kNonceBytes), LiveClock::now() + kIntroduction};
    caller.connection.socket = accept_now(listener, exhausted);
    if (exhausted && callers_.empty()) std::this_thread::sleep_for(milliseconds(20));
    const bool full = caller.connection && callers_.size() >= most;
    if (full || (exhausted && !callers_.empty())) drop_oldest();
    if (!caller.connection) return;
    caller.connection.inbox.expect("H", ranks_);
    caller.connection.send(FrameKind::kChallenge, 0, caller.nonce);
    callers_.push_back(std::move(caller));
  }
}

void Callers::add_awaited(std::vector<pollfd>& waiting) const {
  for (const auto& caller : callers_) waiting.push_back({caller.connection.socket.fd(), POLLIN, 0});
}

// Whether there is nothing more to hear of this one.
bool Callers::hear_one(Caller& caller,
                       const std::function<void(const Introduction&, Connection&)>& admit) {
  Connection& connection = caller.connection;
  const bool there = connection.inbox.read(connection.socket.fd());
  const auto frame = connection.inbox.next();
  if (!frame && there && connection.inbox.wrong().empty() && LiveClock::now() < caller.until) {
    return false;
  }
  std::string nonce;
  const auto who = frame ? proved(*frame, token_, caller.nonce, nonce) : std::nullopt;
  if (who) {
    connection.seal(session_key(token_, caller.nonce, nonce), Seal::Way::kToCaller);
    admit(*who, connection);
  } else {
    last_dropped_ = other_end(connection.socket);
    ++dropped_;
  }
  return true;
}

void Callers::hear(const std::function<void(const Introduction&, Connection&)>& admit) {
  std::vector<Caller> staying;
  for (auto& caller : callers_) {
    if (!hear_one(caller, admit)) staying.push_back(std::move(caller));
  }
  callers_ = std::move(staying);
}

std::string Callers::turned_away() const {
  if (dropped_ == 0) return "";
  return "; " + std::to_string(dropped_) + (dropped_ == 1 ? " caller" : " callers") +
         " without this run's token came, the last from " + last_dropped_;
}

Admission receive_all(const Socket& listener, const RankEnvironment& environment,
                      const std::string& token, const std::string& key, milliseconds timeout) {
  return Reception(listener, environment, token, key, timeout).run();
}

namespace {

// The next frame, by `until`.
std::optional<Frame> awaited_frame(Connection& connection, LiveClock::time_point until) {
  std::optional<Frame> frame = connection.inbox.next();
  for (bool there = true; there && !frame && LiveClock::now() < until;) {
    std::vector<pollfd> waiting{connection.awaited()};
    wait_for_events(waiting, time_until(until));
    connection.flush();
    there = connection.inbox.read(connection.socket.fd());
    frame = connection.inbox.next();
  }
  return frame;
}

// Of a rank that waits to be admitted.
Admission admitted(Connection connection, const Frame& answer, const std::string& token) {
  if (answer.kind == FrameKind::kRefuse) {
    throw RendezvousError(visible(answer.bytes), answer.number == 1);
  }
  Admission admission;
  admission.own_address = own_address(connection.socket);
  admission.token = token;
  admission.connections.push_back(std::move(connection));
  return admission;
}

}  // namespace

std::optional<Frame> introduce(Connection& connection, const std::string& token,
                               const Introduction& who, LiveClock::time_point until,
                               bool& challenged) {
  connection.inbox.expect("C", who.ranks);
  const auto challenge =
      awaited_frame(connection, std::min(until, LiveClock::now() + kIntroduction));
  if (!challenge || challenge->bytes.size() != kNonceBytes) return std::nullopt;
  challenged = true;
  const std::string nonce = random_bytes(kNonceBytes);
  connection.inbox.expect("WR", who.ranks);
  connection.send(FrameKind::kHello, 0,
                  joined({std::to_string(who.rank), std::to_string(who.ranks), who.key, nonce,
                          proof_of(token, who, challenge->bytes, nonce)}));
  connection.seal(session_key(token, challenge->bytes, nonce), Seal::Way::kToCalled);
  return awaited_frame(connection, until);
}

Admission call_first(FirstRank& first, const RankEnvironment& environment, const std::string& key,
                     LiveClock::time_point deadline, milliseconds timeout) {
  const Introduction who{environment.rank, environment.ranks, key};
  // Where rank 0 is gone the lowest of the others reports it.
  const bool first_hand = environment.rank == 1;
  // Rank 0 itself waits for the last ones until its own deadline, and then says so.
  const auto patience = deadline + timeout + 2 * kIntroduction;
  bool challenged = false;
  for (;;) {
    const auto address = first.now();
    Connection connection;
    if (address) connection.socket = connect_once(address->host, address->port, deadline);
    if (connection) {
      const auto answer = introduce(connection, address->token, who, patience, challenged);
      if (answer) return admitted(std::move(connection), *answer, address->token);
    } else if (address && challenged) {
      throw RendezvousError("rank 0 ended before all ranks had joined", first_hand);
    } else if (address && first.lives()) {
      throw RendezvousError(started_twice_text(environment.rank) +
                                ", or it came too late: the ranks of " + environment.file +
                                " have met",
                            true);
    }
    if (LiveClock::now() >= deadline) break;
    std::this_thread::sleep_for(milliseconds(connection ? 200 : 20));
  }
  throw RendezvousError(
      "rank 0 did not join within " + limit_text(timeout) + first.where() +
          (challenged ? "; who answers there does not know this run's token" : ""),
      first_hand);
}

}  // namespace syncline::live
