#include "live/connection.h"

#include <sys/socket.h>

#include <algorithm>

namespace syncline::live {

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
