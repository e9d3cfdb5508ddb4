// What ranks send each other on their control channel, and over what: frames of a kind, a number
// and bytes. On the wire: a byte for the kind, 8 bytes for the number, 8 for the length, then as
// many bytes, all in the machines' byte order, which must be the same; and the frame's seal
// (live/seal.h), but for the first of each side.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "live/seal.h"
#include "live/socket.h"

namespace syncline::live {

enum class FrameKind : char {
  kChallenge = 'C',  // to a caller, not sealed: a nonce
  kHello = 'H',      // the answer, not sealed: rank, number of ranks, key, a nonce, the proof
  kWelcome = 'W',    // from rank 0: all ranks have joined
  kRefuse = 'R',     // from rank 0: why the receiver cannot take part; number 1: only it is told
  kShare = 'S',      // to rank 0: a rank's value for gathering `number`
  kAll = 'A',        // from rank 0: all values of gathering `number`
  kPing = 'P',       // to rank 0, which answers with its time
  kPong = 'Q',
  kBeat = 'B',    // a sign of life
  kFailed = 'F',  // which rank has failed, and how, as text
  kBye = 'E',     // the sender leaves in order
};

struct Frame {
  FrameKind kind = FrameKind::kBeat;
  std::uint64_t number = 0;
  std::string bytes;
};

std::string packed(FrameKind kind, std::uint64_t number = 0, const std::string& bytes = "");

// Several values as the bytes of one frame, and back. Of bytes that were not made by joined(), what
// can be read as values.
std::string joined(const std::vector<std::string>& values);
std::vector<std::string> split(const std::string& bytes);

// The most that a rank may give in one gathering: the spans of a million operations are 40 MB.
inline constexpr std::uint64_t kMostValue = std::uint64_t{64} << 20U;
// The most bytes of a refusal or of how a rank failed.
inline constexpr std::size_t kMostText = 16384;

// Reads what has arrived on a socket and cuts it into frames. What the other side may not say now,
// by kind, by length or by its seal, ends the reading.
class Inbox {
 public:
  // Frames of these kinds may come, from one of so many ranks.
  void expect(std::string_view kinds, int ranks);
  // From now on each frame bears one.
  void unseal(Seal seal) { seal_ = std::move(seal); }

  // Reads what is there without waiting, and not much more than a frame needs at once. False once
  // the other side is gone, or has said what it may not.
  bool read(int fd);
  std::optional<Frame> next();
  // What the other side has said against the protocol; empty: nothing.
  const std::string& wrong() const { return wrong_; }

 private:
  std::nullopt_t refuse(const std::string& what);
  std::uint64_t longest(FrameKind kind) const;

  std::string_view kinds_;
  int ranks_ = 1;
  std::optional<Seal> seal_;
  std::string wrong_;
  std::string buffer_;
  std::size_t at_ = 0;  // in `buffer_`: up to here it has been cut
};

// One end of a connection between two ranks, or with whoever calls. Nobody ever waits for a rank
// that does not read: what cannot be sent at once is kept and sent when the socket takes more.
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
