// Messages of the control channel: ZeroMQ messages between rank 0 and each other rank. CURVE
// encrypts them, and admits only peers that know the run's token: rank 0's key pair is derived from
// it, and a caller must know the public half, which is never sent.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "live/socket.h"

namespace syncline::live {

enum class MessageKind : char {
  kHello = 'H',    // to rank 0, from rank `number`: number of ranks, a space, the key
  kWelcome = 'W',  // from rank 0: all ranks have joined
  kRefuse = 'R',   // from rank 0: why the receiver cannot take part; number 1: only it is refused
  kPiece = 'V',    // of a value; its last bytes come with one of the next two
  kShare = 'S',    // to rank 0: a value for gathering `number`, after its wait limit
  kAll = 'A',      // from rank 0: all values of gathering `number`
  kPing = 'P',     // to rank 0, which answers with its time
  kPong = 'Q',
  kHeartbeat = 'B',  // a sign of life
  kFailed = 'F',     // which rank has failed, and how, as text
  kClose = 'E',      // the sender's last message; the receiver answers with its own
};

struct Message {
  MessageKind kind = MessageKind::kHeartbeat;
  std::uint64_t number = 0;
  std::string bytes;
  std::string from;  // the connection, for an answer; empty on all ranks but 0
  int fd = -1;       // its descriptor
};

// Bytes per piece of a value. Much longer messages are refused, so that unauthenticated peers use
// little of this process's memory.
inline constexpr std::size_t kPieceBytes = 65536;
// Largest value of a rank in one gathering: the spans of a million operations are 40 MB.
inline constexpr std::size_t kMaxValue = std::size_t{64} << 20U;
// Time limit for both ends of a connection to prove that they know the token.
inline constexpr std::chrono::milliseconds kProof{1000};

// Returns 256 random bits as 64 hexadecimal digits.
std::string new_token();

// An event on the connection with rank 0, or on one of rank 0's.
enum class LineEvent { kReached, kNobody, kProved, kRefused, kClosed };

class Messenger {
 public:
  // Makes rank 0's messenger, which is called at `listener`. Throws MachineError.
  Messenger(const Socket& listener, const std::string& token, int ranks);
  // Makes another rank's. Throws MachineError.
  Messenger();
  ~Messenger();
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;
  // Calls rank 0 at this address instead of the previous one, repeatedly until it answers.
  void call(const std::string& address, int port, const std::string& token);

  // Sends without waiting. `to`: Message::from. kUnread: the receiver does not read.
  enum class Sent { kYes, kGone, kUnread };
  Sent send(const std::string& to, MessageKind kind, std::uint64_t number = 0,
            const std::string& bytes = "");
  // Returns the next message, if any; kHeartbeat with number 1: not a valid message.
  std::optional<Message> next();
  std::optional<LineEvent> event();
  // Waits until a message or event may have come, or `wake` is readable. Requires that both were
  // read until empty after the last send.
  void wait(int wake, std::chrono::milliseconds time) const;
  // Returns how many callers were refused, and the last one, for the text of a failure; or empty.
  std::string refused_callers_text() const;

 private:
  void open(int kind);
  void set(int option, int value);
  void set(int option, const std::string& value);
  void watch();

  struct Closing {
    void operator()(void* socket) const;
  };
  std::shared_ptr<void> context_;
  std::unique_ptr<void, Closing> socket_;
  std::unique_ptr<void, Closing> events_;
  std::string called_;               // rank 0's end
  std::map<int, std::string> ends_;  // of callers, by descriptor
  bool refused_ = false;             // of the connection that closes next
  int turned_away_ = 0;
  std::string last_turned_away_;
};

}  // namespace syncline::live
