// Ranks as threads of a test: each has a control channel of its own, as processes would.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "live/control_channel.h"
#include "tests/support/scratch.h"

namespace syncline::test {

// What each rank's body threw; empty: nothing.
using Failures = std::vector<std::string>;

inline live::RankEnvironment place_at(const std::string& file, int rank, int ranks) {
  live::RankEnvironment place;
  place.rank = rank;
  place.ranks = ranks;
  place.file = file;
  return place;
}

// Where rank 0 is, once it has said so.
inline live::FirstAddress published_at(const live::RankEnvironment& place) {
  live::FirstRank first(place);
  for (;;) {
    if (const auto found = first.now()) return *found;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// A connection with somebody who listens.
inline live::Socket called(const std::string& end) {
  live::Socket socket = live::bind_socket(live::kLoopback, 0);
  live::begin_call(socket, end);
  pollfd connected{socket.fd(), POLLOUT, 0};
  ::poll(&connected, 1, 20000);
  return socket;
}

inline std::string end_of(const live::FirstAddress& first) {
  return first.host + ":" + std::to_string(first.port);
}

// Until so many bytes have come, or the other side closes; what came.
inline std::string heard_from(const live::Socket& socket, std::size_t most = std::string::npos) {
  std::string bytes;
  pollfd waiting{socket.fd(), POLLIN, 0};
  char block[4096];
  while (bytes.size() < most && ::poll(&waiting, 1, 20000) > 0) {
    const auto n = ::recv(socket.fd(), block, std::min(sizeof block, most - bytes.size()), 0);
    if (n <= 0) break;
    bytes.append(block, static_cast<std::size_t>(n));
  }
  return bytes;
}

inline void say(const live::Socket& socket, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const auto n = ::send(socket.fd(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) return;
    sent += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
}

// Somebody with the token, who plays a rank and says what he likes.
class Played {
 public:
  using Kind = live::MessageKind;

  // `hello`: number of ranks, a space, the key.
  Played(const live::FirstAddress& first, std::uint64_t rank, const std::string& hello) {
    line.call(first.host, first.port, first.token);
    while (line.event() != live::LineEvent::kProved) wait();
    line.send("", Kind::kHello, rank, hello);
  }
  void say(Kind kind, std::uint64_t number = 0, const std::string& bytes = "") {
    line.send("", kind, number, bytes);
  }
  // Until such a message comes; nothing: the line was closed.
  std::optional<live::Message> heard(Kind kind) {
    for (;;) {
      const auto event = line.event();
      while (auto message = line.next()) {
        if (message->kind == kind) return message;
      }
      if (event == live::LineEvent::kClosed) return std::nullopt;
      if (!event) wait();
    }
  }
  // Rank 0 says goodbye or closes.
  void hold() { heard(Kind::kClose); }
  void wait() { line.wait(wake_.fd(), std::chrono::milliseconds(20)); }

  live::Messenger line;

 private:
  live::Socket wake_{::eventfd(0, EFD_CLOEXEC)};
};

// The value of a gathering, behind a wait limit of so many milliseconds.
inline std::string share(const std::string& value, std::int64_t wait_limit = 0) {
  return std::string(reinterpret_cast<const char*>(&wait_limit), sizeof wait_limit) + value;
}

// One rank of a run, and what it does there.
struct Rank {
  live::RankEnvironment place;
  std::string key = {};
  std::chrono::milliseconds timeout = std::chrono::seconds(20);
  std::function<void(live::ControlChannel&)> body = [](auto& channel) { channel.barrier(); };
  std::chrono::milliseconds late{0};
  std::function<void(const std::string&, bool)> on_failure = {};
};

// Each as it likes, all at the same time.
inline Failures run_each(const std::vector<Rank>& ranks) {
  Failures failures(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&rank = ranks[i], &failure = failures[i]] {
      try {
        std::this_thread::sleep_for(rank.late);
        live::ControlChannel channel(rank.place, {rank.timeout, rank.key, rank.on_failure});
        rank.body(channel);
      } catch (const std::exception& error) {
        failure = error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return failures;
}

// Runs `body` on each rank of one run.
inline Failures run_ranks(int ranks, const std::function<void(live::ControlChannel&)>& body,
                          std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  const Scratch scratch;
  std::vector<Rank> list;
  for (int rank = 0; rank < ranks; ++rank) {
    list.push_back({place_at(scratch.path("meet"), rank, ranks), "", timeout, body});
  }
  return run_each(list);
}

}  // namespace syncline::test
