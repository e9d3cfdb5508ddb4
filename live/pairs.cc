#include <poll.h>

#include <iterator>
#include <map>
#include <sstream>

#include "live/control_channel.h"

namespace syncline::live {
namespace {

// Returns the ends that a rank gave to the others: its listener, and one for each call to a rank
// below it.
std::vector<std::string> ends_of(std::size_t rank, const std::string& told,
                                 const ControlChannel& channel) {
  std::istringstream words(told);
  std::vector<std::string> ends{std::istream_iterator<std::string>(words), {}};
  if (ends.size() == rank + 1 && parse_port(ends.front()) != 0) return ends;
  channel.broken_by(static_cast<int>(rank),
                    "it gave no address for " + rank_text(channel.rank()) + " to call");
}

// Waits until the socket is ready for these events of poll.
void await(const Socket& socket, short what, std::size_t rank, const ControlChannel& channel,
           LiveClock::time_point deadline) {
  constexpr int kLook = 100;  // milliseconds
  for (pollfd waiting{socket.fd(), what, 0};;) {
    channel.check();
    if (LiveClock::now() >= deadline) {
      throw PeerError("no connection with " + rank_text(static_cast<int>(rank)) + " within " +
                      limit_text(channel.timeout()));
    }
    if (poll(&waiting, 1, kLook) > 0) return;
  }
}

}  // namespace

std::vector<Socket> connect_pairs(ControlChannel& channel) {
  const auto own = static_cast<std::size_t>(channel.rank());
  const auto ranks = static_cast<std::size_t>(channel.ranks());
  const Socket listener = listen_on(channel.own_address(), 0);
  std::vector<Socket> pairs(ranks);
  std::string told = own_end(listener.fd());
  for (std::size_t rank = 0; rank < own; ++rank) {
    pairs[rank] = bind_socket(channel.own_address(), 0);
    told += " " + own_end(pairs[rank].fd());
  }

  const auto deadline = LiveClock::now() + channel.timeout();
  const auto all = channel.gather(told);
  std::map<std::string, std::size_t> callers;  // by the end that they call from
  for (std::size_t rank = own + 1; rank < ranks; ++rank) {
    callers[ends_of(rank, all[rank], channel)[own + 1]] = rank;
  }
  for (std::size_t rank = 0; rank < own; ++rank) {
    const std::string end = ends_of(rank, all[rank], channel).front();
    if (begin_call(pairs[rank], end)) await(pairs[rank], POLLOUT, rank, channel, deadline);
    if (other_end(pairs[rank].fd()) == end) continue;
    throw PeerError("no connection with " + rank_text(static_cast<int>(rank)) + " at " + end);
  }
  while (!callers.empty()) {
    await(listener, POLLIN, callers.begin()->second, channel, deadline);
    Socket caller = try_accept(listener);
    const auto known = callers.extract(other_end(caller.fd()));
    if (known) pairs[known.mapped()] = std::move(caller);
  }
  // All wait until the last one is connected.
  channel.barrier();
  return pairs;
}

}  // namespace syncline::live
