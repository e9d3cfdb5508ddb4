// What ranks send each other in their meeting: frames of a kind, a number and bytes. On the wire: a
// byte for the kind, 8 bytes for the number, 8 for the length, then so many bytes; machines of one
// byte order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace syncline {

enum class FrameKind : char {
  kHello = 'H',    // rank, ranks, key
  kWelcome = 'W',  // rank 0: everyone is here
  kRefuse = 'R',   // rank 0: you cannot take part, because; number 1: and nobody else will say so
  kShare = 'S',    // a rank's value of a gathering
  kAll = 'A',      // rank 0: everyone's
  kPing = 'P',
  kPong = 'Q',
  kBeat = 'B',
  kFailed = 'F',  // a rank has failed: text
  kBye = 'E',
};

struct Frame {
  FrameKind kind = FrameKind::kBeat;
  std::uint64_t number = 0;
  std::string bytes;
};

std::string packed(FrameKind kind, std::uint64_t number = 0, const std::string& bytes = "");

// Several values as the bytes of one frame, and back; of bytes that are none, what can be read.
std::string joined(const std::vector<std::string>& values);
std::vector<std::string> split(const std::string& bytes);

// Reads what has come on a socket and cuts it into frames.
class Inbox {
 public:
  // Far above what ranks exchange.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32U;
  // A stranger's bytes must not make us reserve memory.
  static constexpr std::uint64_t kStranger = std::uint64_t{1} << 16U;

  Inbox() = default;
  explicit Inbox(std::uint64_t most) : most_(most) {}
  void allow(std::uint64_t most) { most_ = most; }

  // Takes what is there without waiting. False once the other side is gone, or sends what no rank
  // of ours sends.
  bool read(int fd);
  std::optional<Frame> next();

 private:
  std::uint64_t most_ = kMostBytes;
  bool broken_ = false;
  std::string buffer_;
};

}  // namespace syncline
