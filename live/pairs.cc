#include "live/control_channel.h"

#include <algorithm>
#include <charconv>

#include "live/handshake.h"
#include "live/rank_environment.h"

namespace syncline::live {
namespace {

struct Place {
  std::string host;
  int port = 0;
};

// "10.0.0.3 4711", of another rank.
Place place_in(const std::string& text, const ControlChannel& channel, int rank) {
  const std::size_t space = std::min(text.find(' '), text.size());
  Place place{text.substr(0, space), 0};
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(std::min(text.data() + space + 1, end), end, place.port);
  if (read.ec != std::errc() || read.ptr != end || place.port < 1 || place.port > 65535) {
    channel.broken_by(rank, "it gave no address for " + rank_text(channel.rank()) + " to call");
  }
  return place;
}

// One rank's part: it calls those below it and is called by those above.
class Pairing {
 public:
  Pairing(ControlChannel& channel, const std::string& purpose)
      : channel_(channel),
        who_{channel.rank(), channel.ranks(), purpose},
        deadline_(LiveClock::now() + channel.timeout()),
        pairs_(static_cast<std::size_t>(channel.ranks())) {}

  std::vector<Socket> run() {
    const Socket listener = listen_on(channel_.own_address(), 0);
    const auto places =
        channel_.gather(channel_.own_address() + " " + std::to_string(port_of(listener)));
    for (int rank = 0; rank < channel_.rank(); ++rank) {
      call(rank, place_in(places[static_cast<std::size_t>(rank)], channel_, rank));
    }
    hear(listener);
    // Nobody says more before all have heard what was said so far.
    channel_.barrier();
    return std::move(pairs_);
  }

 private:
  void call(int rank, const Place& place) {
    while (LiveClock::now() < deadline_) {
      channel_.check();
      Connection connection;
      connection.socket = connect_once(place.host, place.port, deadline_);
      bool challenged = false;
      const auto answer = connection
                              ? introduce(connection, channel_.token(), who_, deadline_, challenged)
                              : std::nullopt;
      if (answer && answer->kind == FrameKind::kWelcome) {
        pairs_[static_cast<std::size_t>(rank)] = std::move(connection.socket);
        return;
      }
      wait_for_events(nobody_, std::chrono::milliseconds(20));
    }
    throw PeerError("no connection with " + rank_text(rank) + " at " + place.host + ":" +
                    std::to_string(place.port) + " within " + limit_text(channel_.timeout()));
  }

  void hear(const Socket& listener) {
    Callers callers(channel_.token(), channel_.ranks());
    int missing = channel_.ranks() - channel_.rank() - 1;
    while (missing > 0) {
      channel_.check();
      if (LiveClock::now() >= deadline_) {
        throw PeerError("no connection with " + std::to_string(missing) + " of the ranks above " +
                        rank_text(channel_.rank()) + " within " + limit_text(channel_.timeout()) +
                        callers.turned_away());
      }
      std::vector<pollfd> waiting{{listener.fd(), POLLIN, 0}};
      callers.add_awaited(waiting);
      wait_for_events(waiting, time_until(deadline_));
      callers.accept_from(listener);
      callers.hear([&](const Introduction& who, Connection& connection) {
        const bool above = who.rank > channel_.rank() && who.rank < channel_.ranks();
        if (!above || who.ranks != who_.ranks || who.key != who_.key) return;
        // One that calls again has lost its first connection.
        Socket& pair = pairs_[static_cast<std::size_t>(who.rank)];
        missing -= pair ? 0 : 1;
        connection.send(FrameKind::kWelcome);
        pair = std::move(connection.socket);
      });
    }
  }

  ControlChannel& channel_;
  const Introduction who_;
  const LiveClock::time_point deadline_;
  std::vector<Socket> pairs_;  // by rank
  std::vector<pollfd> nobody_;
};

}  // namespace

std::vector<Socket> connect_pairs(ControlChannel& channel, const std::string& purpose) {
  return Pairing(channel, purpose).run();
}

}  // namespace syncline::live
