#include "live/handshake.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "live/rank_text.h"

namespace syncline::live {
namespace {

using std::chrono::milliseconds;

// How long a caller may take to introduce itself, and how long rank 0 stays to refuse those who
// come late.
constexpr milliseconds kIntroduction{3000};

std::string packed_introduction(const RankEnvironment& environment, const std::string& key) {
  return packed(FrameKind::kHello, 0,
                joined({std::to_string(environment.rank), std::to_string(environment.ranks), key}));
}

std::optional<Introduction> read_introduction(const Frame& frame) {
  const auto parts = split(frame.bytes);
  if (frame.kind != FrameKind::kHello || parts.size() != 3) return std::nullopt;
  return Introduction{std::atoi(parts[0].c_str()), std::atoi(parts[1].c_str()), parts[2]};
}

// Rank 0 while the others join.
class Reception {
 public:
  Reception(const Socket& listener, const RankEnvironment& environment, const std::string& key,
            milliseconds timeout)
      : listener_(listener),
        environment_(environment),
        key_(key),
        timeout_(timeout),
        deadline_(LiveClock::now() + timeout),
        connections_(static_cast<std::size_t>(environment.ranks)),
        joined_(connections_.size(), 0) {
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
      refuse_all(missing_ranks_text(joined_) + " did not join within " + limit_text(timeout_));
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
    refusal_ = text;
    for (auto& connection : connections_) connection.send(packed(FrameKind::kRefuse, 0, text));
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
      connection.send(packed(FrameKind::kRefuse, 0, refusal_));
    } else if (twice) {
      connection.send(packed(FrameKind::kRefuse, 1, started_twice_text(who.rank)));
    }
    if (twice) return;
    joined_[r] = 1;
    connection.inbox.allow(Inbox::kMostBytes);
    connections_[r] = std::move(connection);
  }

  void drop_ended() {
    for (std::size_t r = 1; r < connections_.size(); ++r) {
      Connection& connection = connections_[r];
      if (!connection || connection.inbox.read(connection.socket.fd())) continue;
      connection = Connection();
      refuse_all(rank_text(static_cast<int>(r)) + " ended before all ranks had joined");
    }
  }

  Admission admit_all() {
    // Ranks on other machines reach this one by an address that is not the loopback.
    std::string address = "127.0.0.1";
    for (auto& connection : connections_) {
      if (!connection) continue;
      const std::string own = own_address(connection.socket);
      if (own.rfind("127.", 0) != 0) address = own;
      connection.send(packed(FrameKind::kWelcome));
    }
    return {std::move(connections_), address};
  }

  const Socket& listener_;
  const RankEnvironment& environment_;
  const std::string& key_;
  const milliseconds timeout_;
  LiveClock::time_point deadline_;
  std::vector<Connection> connections_;  // by rank
  std::vector<char> joined_;             // by rank
  Callers callers_;
  std::string refusal_;  // why the run cannot take place; empty: it can
};

}  // namespace

void Callers::accept_from(const Socket& listener) {
  Socket socket = accept_by(listener, LiveClock::now());
  if (!socket) return;
  constexpr std::size_t kMostAtOnce = 10000;
  if (callers_.size() >= kMostAtOnce) callers_.erase(callers_.begin());
  Caller caller{{}, LiveClock::now() + kIntroduction};
  caller.connection.socket = std::move(socket);
  caller.connection.inbox = Inbox(Inbox::kStranger);
  callers_.push_back(std::move(caller));
}

void Callers::add_awaited(std::vector<pollfd>& waiting) const {
  for (const auto& caller : callers_) waiting.push_back({caller.connection.socket.fd(), POLLIN, 0});
}

void Callers::hear(const std::function<void(const Introduction&, Connection&)>& admit) {
  const auto now = LiveClock::now();
  const auto done = [&](Caller& caller) {
    Connection& connection = caller.connection;
    const bool there = connection.inbox.read(connection.socket.fd());
    const auto frame = connection.inbox.next();
    const auto who = frame ? read_introduction(*frame) : std::nullopt;
    if (who) admit(*who, connection);
    return frame || !there || now >= caller.until;
  };
  std::vector<Caller> staying;
  for (auto& caller : callers_) {
    if (!done(caller)) staying.push_back(std::move(caller));
  }
  callers_ = std::move(staying);
}

Admission receive_all(const Socket& listener, const RankEnvironment& environment,
                      const std::string& key, milliseconds timeout) {
  return Reception(listener, environment, key, timeout).run();
}

Admission call_first(const HostAddress& first, const RankEnvironment& environment,
                     const std::string& key, LiveClock::time_point deadline, milliseconds timeout) {
  Connection connection;
  connection.socket = connect_by(first.host, first.port, deadline);
  // Where rank 0 is gone the lowest of the others reports it.
  const bool first_hand = environment.rank == 1;
  if (!connection) {
    throw RendezvousError("rank 0 did not join within " + limit_text(timeout) + " (at " +
                              first.host + ":" + std::to_string(first.port) + ")",
                          first_hand);
  }
  connection.send(packed_introduction(environment, key));
  // Rank 0 itself waits for the last ones until its own deadline, and then says so.
  const auto patience = deadline + timeout + 2 * kIntroduction;
  std::optional<Frame> frame;
  for (bool there = true; there && !frame && LiveClock::now() < patience;) {
    std::vector<pollfd> waiting{connection.awaited()};
    wait_for_events(waiting, time_until(patience));
    connection.flush();
    there = connection.inbox.read(connection.socket.fd());
    frame = connection.inbox.next();
  }
  if (!frame) throw RendezvousError("rank 0 ended before all ranks had joined", first_hand);
  if (frame->kind == FrameKind::kRefuse) throw RendezvousError(frame->bytes, frame->number == 1);
  Admission admission;
  admission.own_address = own_address(connection.socket);
  admission.connections.push_back(std::move(connection));
  return admission;
}

}  // namespace syncline::live
