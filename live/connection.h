// One end of a connection between two ranks, or with whoever calls. Nobody ever waits for a rank
// that does not read: what cannot be sent at once is kept and sent when the socket takes more.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "live/frame.h"
#include "live/socket.h"

namespace syncline::live {

struct Connection {
  Socket socket;
  Inbox inbox;
  std::string unsent;
  std::size_t sent = 0;  // bytes of `unsent` that are on their way already
  std::optional<Seal> own_seal;
  LiveClock::time_point heard = LiveClock::now();  // when something last came

  explicit operator bool() const { return static_cast<bool>(socket); }
  // Both ways are sealed from now on; `own`: what this side sends.
  void seal(const std::string& session_key, Seal::Way own);
  // Sends what the socket takes now and keeps the rest for flush().
  void send(FrameKind kind, std::uint64_t number = 0, const std::string& bytes = "");
  // Drops what is left once the other side is gone; that it is gone is found by reading.
  void flush();
  // What poll() is to wait for: something to read, and room for what is unsent.
  pollfd awaited() const;
};

// Waits until one of them has something to be done, or for 200 ms, or for `time` if that is less.
void wait_for_events(std::vector<pollfd>& waiting, std::chrono::milliseconds time);

std::chrono::milliseconds time_until(LiveClock::time_point time);

// How long a rank that gives up waits until the others have read why.
inline constexpr auto kParting = std::chrono::milliseconds(1000);

// Closes every connection once all that was sent on it has arrived, at the latest after kParting:
// each is half-closed when nothing is unsent, and then read until the other side closes too,
// because a socket that is closed with something unread discards what it has sent.
void close_after_sending(std::vector<Connection>& connections);

}  // namespace syncline::live
