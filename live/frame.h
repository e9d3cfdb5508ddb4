// What ranks send each other on their control channel: frames of a kind, a number and bytes. On the
// wire: a byte for the kind, 8 bytes for the number, 8 for the length, then as many bytes, all in
// the machines' byte order, which must be the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace syncline::live {

enum class FrameKind : char {
  kHello = 'H',    // to rank 0: rank, number of ranks, key
  kWelcome = 'W',  // from rank 0: all ranks have joined
  kRefuse = 'R',   // from rank 0: why the receiver cannot take part; number 1: only it is told
  kShare = 'S',    // to rank 0: a rank's value for gathering `number`
  kAll = 'A',      // from rank 0: all values of gathering `number`
  kPing = 'P',     // to rank 0, which answers with its time
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

// Reads what has arrived on a socket and cuts it into frames.
class Inbox {
 public:
  // Far above what ranks exchange.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32U;
  // For callers that have not introduced themselves: their bytes must not make us reserve memory.
  static constexpr std::uint64_t kStranger = std::uint64_t{1} << 16U;

  Inbox() = default;
  explicit Inbox(std::uint64_t most) : most_(most) {}
  void allow(std::uint64_t most) { most_ = most; }

  // Reads what is there without waiting. False once the other side is gone, or sends a frame that
  // is larger than allowed.
  bool read(int fd);
  std::optional<Frame> next();

 private:
  std::uint64_t most_ = kMostBytes;
  bool broken_ = false;
  std::string buffer_;
};

}  // namespace syncline::live
