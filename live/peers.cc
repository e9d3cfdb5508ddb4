#include "live/peers.h"

#include <algorithm>
#include <utility>

namespace syncline::live {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// If a link is cut, both ends find the other silent. Rank 0 has to report it: the others wait
// longer.
constexpr milliseconds kOthersWait = 1000ms;

}  // namespace

std::string broken_text(int rank, const std::string& end, const std::string& what) {
  return rank_text(rank) + (end.empty() ? "" : " (" + end + ")") + " broke the protocol: " + what;
}

Peers::Peers(const RankEnvironment& environment, std::unique_ptr<Messenger> messenger)
    : is_first_(environment.rank == 0),
      messenger_(std::move(messenger)),
      peers_(is_first_ ? static_cast<std::size_t>(environment.ranks) : 1) {
  if (is_first_) first().state = Peer::State::kGone;  // no messages to this rank itself
}

Peer* Peers::sender(const Message& message) {
  const auto speaks = [&](const Peer& peer) {
    return peer.state == Peer::State::kHere && peer.id == message.from;
  };
  const auto found = std::ranges::find_if(peers_, speaks);
  return found == peers_.end() ? nullptr : &*found;
}

void Peers::send(Peer& peer, MessageKind kind, std::uint64_t number, const std::string& bytes) {
  if (peer.state != Peer::State::kHere) return;
  const auto sent = messenger_->send(peer.id, kind, number, bytes);
  peer.lost = peer.lost || sent == Messenger::Sent::kGone;
  if (sent != Messenger::Sent::kUnread) return;
  peer.state = Peer::State::kGone;
  if (!unread_) {
    unread_ = broken_text(rank_of(peer), peer.end, "it asks and does not read the answers");
  }
}

void Peers::send_all(MessageKind kind, std::uint64_t number, const std::string& bytes) {
  for (Peer& peer : peers_) send(peer, kind, number, bytes);
}

void Peers::send_value(Peer& peer, MessageKind kind, std::uint64_t number, const std::string& head,
                       const std::string& value) {
  std::size_t sent = 0;
  for (; value.size() - sent > kPieceBytes; sent += kPieceBytes) {
    send(peer, MessageKind::kPiece, 0, value.substr(sent, kPieceBytes));
  }
  send(peer, kind, number, head + value.substr(sent));
}

void Peers::heartbeat(milliseconds every) {
  if (LiveClock::now() < next_heartbeat_) return;
  next_heartbeat_ = LiveClock::now() + every;
  send_all(MessageKind::kHeartbeat);
}

void Peers::wait(int wake, milliseconds most) const {
  const auto next = std::chrono::ceil<milliseconds>(next_heartbeat_ - LiveClock::now());
  messenger_->wait(wake, std::min(next, most));
}

void Peers::take_closed() {
  if (is_first_) {
    // The next message finds the peer of the closed connection.
    next_heartbeat_ = LiveClock::now() + 5ms;
  } else {
    first().lost = first().state == Peer::State::kHere;
  }
}

void Peers::take_goodbye(const Message& message) {
  Peer* peer = sender(message);
  if (peer != nullptr && message.kind == MessageKind::kClose) peer->state = Peer::State::kGone;
}

bool Peers::any_hears() const {
  return std::ranges::any_of(
      peers_, [](const Peer& peer) { return peer.state == Peer::State::kHere && !peer.lost; });
}

void Peers::hear_all() {
  for (Peer& peer : peers_) peer.heard = LiveClock::now();
}

std::optional<std::string> Peers::find_unread() { return std::exchange(unread_, std::nullopt); }

std::optional<std::string> Peers::find_lost(bool met) {
  std::optional<std::string> found;
  for (Peer& peer : peers_) {
    if (!peer.lost || peer.state != Peer::State::kHere) continue;
    peer.state = Peer::State::kGone;
    if (found) continue;
    found = rank_text(rank_of(peer)) +
            (met ? " ended in the middle of the run" : " ended before all ranks had joined");
  }
  return found;
}

// Returns a sentence on the first rank that was silent for too long.
std::optional<std::string> Peers::find_silent(milliseconds timeout) {
  const auto limit = timeout + (is_first_ ? 0ms : kOthersWait);
  const auto now = LiveClock::now();
  // Silence does not count if this process itself was stopped.
  const bool stopped = now - std::exchange(looked_, now) > 2 * kHeartbeatEvery + timeout / 4;
  if (stopped) hear_all();
  for (const Peer& peer : peers_) {
    if (peer.state != Peer::State::kHere || now - peer.heard < limit) continue;
    return rank_text(rank_of(peer)) + " has been silent for " + limit_text(timeout) +
           ": it hangs, or its link is cut";
  }
  return std::nullopt;
}

}  // namespace syncline::live
