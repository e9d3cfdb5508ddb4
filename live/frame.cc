#include "live/frame.h"

#include <sys/socket.h>

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

bool Inbox::read(int fd) {
  char chunk[65536];
  for (;;) {
    const auto n = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
    if (n > 0) {
      buffer_.append(chunk, static_cast<std::size_t>(n));
      if (buffer_.size() > most_ + kHeader) return !(broken_ = most_ < kMostBytes);
      continue;
    }
    if (n == 0) return false;
    if (errno == EINTR) continue;
    return !broken_ && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

std::optional<Frame> Inbox::next() {
  if (broken_ || buffer_.size() < kHeader) return std::nullopt;
  std::uint64_t length = 0;
  std::memcpy(&length, buffer_.data() + 9, sizeof length);
  if (length > most_) broken_ = true;
  if (broken_ || buffer_.size() < kHeader + length) return std::nullopt;
  Frame frame;
  frame.kind = static_cast<FrameKind>(buffer_[0]);
  std::memcpy(&frame.number, buffer_.data() + 1, sizeof frame.number);
  frame.bytes = buffer_.substr(kHeader, length);
  buffer_.erase(0, kHeader + length);
  return frame;
}

}  // namespace syncline::live
