// What ranks say on their control channel, and how it gets there: messages of ZeroMQ between rank 0
// and each other rank. CURVE encrypts them, and lets nobody in who does not know the run's token:
// rank 0's key pair is made of it, and who calls must know the public half, which is never sent.
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
  kRefuse = 'R',   // from rank 0: why the receiver cannot take part; number 1: only it is told
  kPiece = 'V',    // of a value; its last bytes come with one of the next two
  kShare = 'S',    // to rank 0: a value for gathering `number`, behind its wait limit
  kAll = 'A',      // from rank 0: the next rank's value of gathering `number`
  kPing = 'P',     // to rank 0, which answers with its time
  kPong = 'Q',
  kHeartbeat = 'B',  // a sign of life
  kFailed = 'F',     // which rank has failed, and how, as text
  kClose = 'E',      // the last that its sender says; the receiver answers with its own
};

struct Message {
  MessageKind kind = MessageKind::kHeartbeat;
  std::uint64_t number = 0;
  std::string bytes;
  std::string from;  // the connection, for an answer; empty at all ranks but 0
  int fd = -1;       // its descriptor
};

// Values travel in pieces of so many bytes. Nothing much longer is taken from anybody, so that
// unauthenticated peers have little of this process's memory.
inline constexpr std::size_t kPieceBytes = 65536;
// The most that a rank may give in one gathering: the spans of a million operations are 40 MB.
inline constexpr std::size_t kMostValue = std::size_t{64} << 20U;
// How long a caller, and whoever is called, may take to prove that it knows the token.
inline constexpr std::chrono::milliseconds kProof{1000};

// 256 random bits as 64 hexadecimal digits.
std::string new_token();

// What happened to the connection with rank 0, or to one of those that rank 0 has.
enum class LineEvent { kReached, kNobody, kProved, kRefused, kClosed };

class Messenger {
 public:
  // Rank 0's, which is called at `listener`. Throws MachineError.
  Messenger(const Socket& listener, const std::string& token, int ranks);
  // Another rank's. Throws MachineError.
  Messenger();
  ~Messenger();
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;
  // Calls rank 0, again and again until it answers, instead of whom it called before.
  void call(const std::string& address, int port, const std::string& token);

  // Never waits. `to`: where a message was from. kUnread: it does not read what it was sent.
  enum class Sent { kYes, kGone, kUnread };
  Sent send(const std::string& to, MessageKind kind, std::uint64_t number = 0,
            const std::string& bytes = "");
  // What has come; kHeartbeat of number 1: something that is no message.
  std::optional<Message> next();
  std::optional<LineEvent> event();
  // Waits until there may be one of these, or `wake` can be read. Before it both were asked until
  // they had nothing, after the last send.
  void wait(int wake, std::chrono::milliseconds time) const;
  // For the words of a failure: how many were turned away, and who was the last; or nothing.
  std::string turned_away() const;

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
  std::string called_;               // where
  std::map<int, std::string> ends_;  // of those who have called, by descriptor
  bool refused_ = false;             // the one whose connection closes next
  int turned_away_ = 0;
  std::string last_turned_away_;
};

}  // namespace syncline::live
