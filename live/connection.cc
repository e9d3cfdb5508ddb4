#include "live/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace syncline::live {
namespace {

constexpr std::size_t kHeader = 1 + 8 + 8;

}  // namespace

std::string packed(FrameKind kind, std::uint64_t number, const std::string& bytes) {
  std::string text(kHeader, '\0');
  text[0] = static_cast<char>(kind);
  const std::uint64_t length = bytes.size();
  std::memcpy(text.data() + 1, &number, sizeof number);
  std::memcpy(text.data() + 9, &length, sizeof length);
  return text + bytes;
}

std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const auto& value : values) {
    const std::uint64_t length = value.size();
    text.append(reinterpret_cast<const char*>(&length), sizeof length);
    text += value;
  }
  return text;
}

std::vector<std::string> split(const std::string& bytes) {
  std::vector<std::string> values;
  std::size_t at = 0;
  while (bytes.size() - at >= 8) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    at += sizeof length;
    if (length > bytes.size() - at) break;
    values.push_back(bytes.substr(at, length));
    at += length;
  }
  return values;
}

void Inbox::expect(std::string_view kinds, int ranks) {
  kinds_ = kinds;
  ranks_ = ranks;
}

bool Inbox::read(int fd) {
  // A sender who is quicker than we are must not keep us from all others.
  constexpr int kMostChunks = 16;
  char chunk[65536];
  for (int i = 0; i < kMostChunks && wrong_.empty(); ++i) {
    const auto n = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
    if (n > 0) {
      buffer_.append(chunk, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
  }
  return wrong_.empty();
}

std::uint64_t Inbox::longest(FrameKind kind) const {
  switch (kind) {
    case FrameKind::kChallenge:
      return kNonceBytes;
    case FrameKind::kHello:
      return 1024;
    case FrameKind::kShare:
      return kMostValue + 64;  // with a patience in front
    case FrameKind::kAll:
      return static_cast<std::uint64_t>(ranks_) * (kMostValue + 8);
    case FrameKind::kPong:
      return 8;
    case FrameKind::kRefuse:
    case FrameKind::kFailed:
      return kMostText;
    default:
      return 0;
  }
}

std::nullopt_t Inbox::refuse(const std::string& what) {
  wrong_ = what;
  buffer_ = std::string();
  at_ = 0;
  return std::nullopt;
}

std::optional<Frame> Inbox::next() {
  const std::string_view unread = std::string_view(buffer_).substr(at_);
  if (unread.size() < kHeader) return std::nullopt;
  Frame frame;
  std::uint64_t length = 0;
  frame.kind = static_cast<FrameKind>(unread[0]);
  std::memcpy(&frame.number, unread.data() + 1, sizeof frame.number);
  std::memcpy(&length, unread.data() + 9, sizeof length);
  if (kinds_.find(unread[0]) == std::string_view::npos) {
    return refuse("it sent something that has no place here");
  }
  if (length > longest(frame.kind)) {
    return refuse("it began a frame of " + std::to_string(length) + " bytes where at most " +
                  std::to_string(longest(frame.kind)) + " are expected");
  }
  const std::size_t sealed = kHeader + length;
  const std::size_t whole = sealed + (seal_ ? Seal::kBytes : 0);
  if (unread.size() < whole) return std::nullopt;
  if (seal_ &&
      !same_bytes(seal_->next(unread.substr(0, sealed)), unread.substr(sealed, whole - sealed))) {
    return refuse("a frame does not bear the seal of this run");
  }
  frame.bytes = unread.substr(kHeader, length);
  at_ += whole;
  // Moved to the front once in a while, so that many small frames cost no more than their bytes.
  if (at_ == buffer_.size() || at_ > buffer_.size() / 2) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  return frame;
}

void Connection::seal(const std::string& session_key, Seal::Way own) {
  const bool called = own == Seal::Way::kToCaller;
  own_seal.emplace(session_key, own);
  inbox.unseal(Seal(session_key, called ? Seal::Way::kToCalled : Seal::Way::kToCaller));
}

void Connection::send(FrameKind kind, std::uint64_t number, const std::string& bytes) {
  if (!socket) return;
  const std::string frame = packed(kind, number, bytes);
  unsent += frame;
  if (own_seal) unsent += own_seal->next(frame);
  flush();
}

void Connection::flush() {
  if (!socket || unsent.empty()) return;
  if (send_some(socket, unsent, sent) && sent < unsent.size()) return;
  unsent.clear();
  sent = 0;
}

pollfd Connection::awaited() const {
  return {socket.fd(), static_cast<short>(unsent.empty() ? POLLIN : POLLIN | POLLOUT), 0};
}

void wait_for_events(std::vector<pollfd>& waiting, std::chrono::milliseconds time) {
  poll(waiting.data(), waiting.size(),
       static_cast<int>(std::clamp<long long>(time.count(), 0, 200)));
}

std::chrono::milliseconds time_until(LiveClock::time_point time) {
  return std::chrono::ceil<std::chrono::milliseconds>(time - LiveClock::now());
}

void close_after_sending(std::vector<Connection>& connections) {
  const auto deadline = LiveClock::now() + kParting;
  for (auto& connection : connections) connection.flush();
  std::vector<char> closed(connections.size(), 0);
  while (LiveClock::now() < deadline) {
    std::vector<pollfd> waiting;
    for (std::size_t i = 0; i < connections.size(); ++i) {
      Connection& connection = connections[i];
      if (!connection) continue;
      connection.flush();
      if (connection.unsent.empty() && closed[i] == 0) {
        shutdown(connection.socket.fd(), SHUT_WR);
        closed[i] = 1;
      }
      if (connection.inbox.read(connection.socket.fd())) {
        while (connection.inbox.next()) {
        }
        waiting.push_back(connection.awaited());
      } else {
        connection = Connection();
      }
    }
    if (waiting.empty()) return;
    wait_for_events(waiting, time_until(deadline));
  }
}

}  // namespace syncline::live
