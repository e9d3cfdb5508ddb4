// What the other side of a connection sends, in pieces of any length: frames in order, or a
// complaint, and never more kept than a frame needs.
#include <sys/socket.h>

#include <cstdlib>

#include "live/connection.h"
#include "live/socket.h"
#include "tests/fuzz/fuzz_target.h"

// The first byte says who reads (what may come), and how long the pieces are.
SYNCLINE_FUZZ_TARGET(frames, bytes) {
  using namespace syncline;
  if (bytes.empty()) throw InputError("nothing was sent");
  constexpr std::string_view kMayCome[] = {"H", "C", "WR", "SPBFE", "AQBFE", ""};
  const auto first = static_cast<unsigned char>(bytes[0]);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  const live::Socket here(ends[0]);
  live::Socket there(ends[1]);
  live::Inbox inbox;
  inbox.expect(kMayCome[first % std::size(kMayCome)], 4);
  const std::size_t piece = 1 + std::size_t{first} / std::size(kMayCome) * 7;
  std::size_t read = 0;
  std::size_t framed = 0;
  for (std::size_t at = 1; at < bytes.size() && inbox.wrong().empty(); at += piece) {
    const std::string sent = bytes.substr(at, piece);
    if (::send(there.fd(), sent.data(), sent.size(), MSG_DONTWAIT) != std::ssize(sent)) break;
    inbox.read(here.fd());
    read += sent.size();
    while (const auto frame = inbox.next()) {
      framed += live::packed(frame->kind, frame->number, frame->bytes).size();
      if (framed > read) std::abort();  // more than was sent
      const auto values = live::split(frame->bytes);
      if (live::split(live::joined(values)) != values) std::abort();
    }
  }
  if (!inbox.wrong().empty()) throw InputError(inbox.wrong());
}
