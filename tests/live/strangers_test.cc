// Ranks among strangers: who does not know the run's token is dropped and does no harm, whatever it
// says, repeats or holds; and a rank that says what no rank says is named and ends the run in
// order. Ranks are threads, on this machine's own addresses.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "live/control_channel.h"
#include "live/figures.h"
#include "live/handshake.h"
#include "live/live_executor.h"
#include "tests/support/dice.h"
#include "tests/support/ranks.h"
#include "tests/support/watcher.h"

namespace syncline::live {
namespace {

using namespace std::chrono_literals;
using test::Failures;
using test::place_at;
using test::Scratch;

const std::string kToken(64, 'a');

// Two ends of one connection.
struct Line {
  Line() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    here.socket = Socket(ends[0]);
    there.socket = Socket(ends[1]);
  }
  // Reads at `here` until a frame has come, or never will.
  std::optional<Frame> heard() {
    for (;;) {
      there.flush();
      const bool open = here.inbox.read(here.socket.fd());
      auto frame = here.inbox.next();
      if (frame || !open) return frame;
    }
  }
  Connection here;
  Connection there;
};

TEST(KeyedHash, IsHmacSha256) {
  // RFC 4231, test case 2.
  const std::string hash = KeyedHash("Jefe").of("what do ya want ", "for nothing?");
  const unsigned char first[] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e};
  ASSERT_EQ(hash.size(), KeyedHash::kBytes);
  EXPECT_EQ(std::memcmp(hash.data(), first, sizeof first), 0);
  const KeyedHash again("Jefe");
  EXPECT_EQ(again.of("a"), again.of("a")) << "one message leaves nothing for the next";
  EXPECT_NE(new_token(), new_token());
}

TEST(Frames, ComeAsTheyWereSent) {
  test::Dice dice(7);
  Line line;
  line.here.inbox.expect("SB", 2);
  line.there.seal("key", Seal::Way::kToCalled);
  line.here.seal("key", Seal::Way::kToCaller);
  for (int i = 0; i < 3000; ++i) {
    const std::string bytes(static_cast<std::size_t>(dice.between(0, i % 100 == 0 ? 200000 : 40)),
                            'x');
    line.there.send(FrameKind::kShare, static_cast<std::uint64_t>(i), bytes);
    line.there.send(FrameKind::kBeat);
    const auto frame = line.heard();
    ASSERT_TRUE(frame) << line.here.inbox.wrong();
    EXPECT_EQ(frame->number, static_cast<std::uint64_t>(i));
    ASSERT_EQ(frame->bytes, bytes);
    ASSERT_EQ(line.heard()->kind, FrameKind::kBeat);
  }
}

// Any bit of them, left out, twice, in another order, or back to their sender.
TEST(Frames, ThatAreTamperedWithAreRefused) {
  test::Dice dice(8);
  const auto bytes_of_two = [] {
    Seal seal("key", Seal::Way::kToCalled);
    std::vector<std::string> frames;
    for (const char* text : {"first", "second"}) {
      frames.push_back(packed(FrameKind::kShare, 3, text));
      frames.back() += seal.next(frames.back());
    }
    return frames;
  };
  const auto frames = bytes_of_two();
  const auto taken = [](const std::string& bytes) {
    Line line;
    line.here.inbox.expect("S", 2);
    line.here.seal("key", Seal::Way::kToCaller);
    line.there.unsent = bytes;
    line.there.flush();
    line.there = Connection();
    int count = 0;
    while (line.heard()) ++count;
    return count;
  };
  EXPECT_EQ(taken(frames[0] + frames[1]), 2);
  EXPECT_EQ(taken(frames[1]), 0) << "left out";
  EXPECT_EQ(taken(frames[0] + frames[0]), 1) << "twice";
  EXPECT_EQ(taken(frames[1] + frames[0]), 0) << "in another order";
  for (int i = 0; i < 500; ++i) {
    std::string bytes = frames[0];
    const auto at = static_cast<std::size_t>(dice.between(0, static_cast<int>(bytes.size()) - 1));
    bytes[at] = static_cast<char>(bytes[at] ^ 1 << dice.between(0, 7));
    EXPECT_EQ(taken(bytes), 0) << "byte " << at;
  }
  std::string reflected = packed(FrameKind::kShare, 3, "first");
  reflected += Seal("key", Seal::Way::kToCaller).next(reflected);
  EXPECT_EQ(taken(reflected), 0) << "our own";
}

TEST(Frames, OfLengthsThatNobodyExpectsAreRefusedAtTheirHead) {
  for (const auto& [kind, length] :
       {std::pair(FrameKind::kShare, std::uint64_t{1} << 32U),
        std::pair(FrameKind::kBeat, std::uint64_t{1}),
        std::pair(FrameKind::kAll, std::numeric_limits<std::uint64_t>::max())}) {
    Line line;
    line.here.inbox.expect("SAB", 2);
    std::string head = packed(kind);
    std::memcpy(head.data() + 9, &length, sizeof length);
    line.there.unsent = head;
    EXPECT_FALSE(line.heard());
    EXPECT_NE(line.here.inbox.wrong().find("at most"), std::string::npos);
  }
}

// Callers of a listener here, which says who was let in.
class Door {
 public:
  Door() : listener_(listen_on(kLoopback, 0)), callers_(kToken, 2) {}
  Connection call() const {
    Connection connection;
    connection.socket = connect_once(kLoopback, port_of(listener_), LiveClock::now() + 20s);
    return connection;
  }
  // Until so many are in, or turned away.
  void hear(std::size_t in, int away) {
    while (admitted.size() < in || turned < away) {
      callers_.accept_from(listener_);
      callers_.hear([&](const Introduction& who, Connection& connection) {
        admitted.push_back(who.rank);
        connection.send(FrameKind::kWelcome);
        kept_.push_back(std::move(connection));
      });
      const std::string text = callers_.turned_away();
      turned = text.empty() ? 0 : std::atoi(text.c_str() + 2);
      std::this_thread::sleep_for(1ms);
    }
  }
  std::vector<int> admitted;
  int turned = 0;

 private:
  Socket listener_;
  Callers callers_;
  std::vector<Connection> kept_;
};

std::string frame_of(Connection& connection) {
  for (;;) {
    connection.inbox.read(connection.socket.fd());
    if (const auto frame = connection.inbox.next()) return frame->bytes;
    std::this_thread::sleep_for(1ms);
  }
}

TEST(Strangers, AReplayedIntroductionIsWorthNothing) {
  Door door;
  std::string hello;
  std::thread rank([&] {
    Connection connection = door.call();
    connection.inbox.expect("C", 2);
    const std::string nonce(kNonceBytes, 'n');
    hello = packed(FrameKind::kHello, 0,
                   joined({"1", "2", "key", nonce,
                           proof_of(kToken, {1, 2, "key"}, frame_of(connection), nonce)}));
    connection.unsent = hello;
    connection.flush();
  });
  door.hear(1, 0);
  rank.join();
  Connection again = door.call();
  again.unsent = hello;
  again.flush();
  door.hear(1, 1);
  EXPECT_EQ(door.admitted, std::vector<int>{1});
}

// Each part of an introduction is proved.
TEST(Strangers, NobodyIntroducesHimselfAsAnother) {
  const std::string nonce(kNonceBytes, 'n');
  const auto sayings = [&](const std::string& challenge) {
    const auto proof = [&](const std::string& token, const Introduction& who) {
      return proof_of(token, who, challenge, nonce);
    };
    const Introduction who{1, 2, "key"};
    return std::vector<std::vector<std::string>>{
        {"1", "2", "key", nonce, proof("a guess", who)},
        {"0", "2", "key", nonce, proof(kToken, who)},
        {"1", "3", "key", nonce, proof(kToken, who)},
        {"1", "2", "another", nonce, proof(kToken, who)},
        {"1", "2", "key", std::string(kNonceBytes, 'm'), proof(kToken, who)},
        {"1", "2", "key", nonce, proof(kToken, who).substr(1)},
        {"1", "2", "key", nonce, ""},
        {"1", "2", "key", nonce.substr(1), proof(kToken, who)},
        {"one", "2", "key", nonce, proof(kToken, who)},
        {"1", "2"},
        {}};
  };
  Door door;
  const int count = static_cast<int>(sayings(nonce).size());
  std::thread strangers([&] {
    for (int i = 0; i < count; ++i) {
      Connection connection = door.call();
      connection.inbox.expect("C", 2);
      connection.send(FrameKind::kHello, 0,
                      joined(sayings(frame_of(connection))[static_cast<std::size_t>(i)]));
      while (connection.inbox.read(connection.socket.fd())) std::this_thread::sleep_for(1ms);
    }
  });
  door.hear(0, count);
  strangers.join();
  EXPECT_EQ(door.admitted, std::vector<int>());
}

// Rank 0 with what it does, and somebody who plays rank 1.
std::string first_rank_says(
    const std::function<void(const FirstAddress&)>& other, std::chrono::milliseconds timeout = 20s,
    const std::function<void(ControlChannel&)>& body = [](ControlChannel& channel) {
      channel.barrier(ControlChannel::kPatient);
      channel.barrier(ControlChannel::kPatient);
    }) {
  const Scratch scratch;
  const RankEnvironment place = place_at(scratch.path("meet"), 1, 2);
  std::thread played([&] {
    FirstRank first(place);
    std::optional<FirstAddress> found;
    while (!(found = first.now())) std::this_thread::sleep_for(1ms);
    other(*found);
  });
  std::string failure;
  try {
    ControlChannelSettings settings;
    settings.timeout = timeout;
    ControlChannel channel(place_at(scratch.path("meet"), 0, 2), settings);
    body(channel);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  played.join();
  return failure;
}

// Rank 1, admitted.
Connection joined_as_one(const FirstAddress& first) {
  Connection connection;
  connection.socket = connect_by(first.host, first.port, LiveClock::now() + 20s);
  bool challenged = false;
  introduce(connection, first.token, {1, 2, ""}, LiveClock::now() + 20s, challenged);
  return connection;
}

void hold_until_closed(Connection& connection) {
  while (connection.inbox.read(connection.socket.fd())) {
    connection.flush();
    std::this_thread::sleep_for(1ms);
  }
}

TEST(Strangers, AnAdmittedRankThatBreaksTheProtocolIsNamed) {
  const std::string fine = joined({"0", ""});
  const std::vector<std::function<void(Connection&)>> breaches{
      [&](Connection& c) { c.send(FrameKind::kShare, 0, ""); },
      [&](Connection& c) { c.send(FrameKind::kShare, 0, joined({"0"})); },
      [&](Connection& c) {
        c.send(FrameKind::kShare, 0, joined({"soon", ""}));
      },
      [&](Connection& c) {
        c.send(FrameKind::kShare, 0, joined({"-1", ""}));
      },
      [&](Connection& c) { c.send(FrameKind::kShare, 5, fine); },
      [&](Connection& c) {
        c.send(FrameKind::kShare, 0, fine);
        c.send(FrameKind::kShare, 0, fine);
      },
      [&](Connection& c) {
        c.send(FrameKind::kAll, 0, joined({"", ""}));
      },
      [&](Connection& c) { c.send(FrameKind::kPong, 0, std::string(8, '\0')); },
      [&](Connection& c) { c.send(FrameKind::kBeat, 0, "x"); },
      [&](Connection& c) { c.send(FrameKind::kFailed, 0, std::string(kMostText + 1, 'x')); },
      [&](Connection& c) { c.unsent = packed(FrameKind::kBeat) + std::string(Seal::kBytes, 's'); },
      [&](Connection& c) { c.unsent = std::string(500, '\xff'); }};
  for (std::size_t i = 0; i < breaches.size(); ++i) {
    const std::string failure = first_rank_says([&](const FirstAddress& first) {
      Connection connection = joined_as_one(first);
      breaches[i](connection);
      connection.flush();
      hold_until_closed(connection);
    });
    EXPECT_EQ(failure.rfind("rank 1 (", 0), 0u) << i << ": " << failure;
    EXPECT_NE(failure.find(") broke the protocol: "), std::string::npos) << i << ": " << failure;
  }
}

// Whatever an admitted rank says, rank 0 ends in order, in time, and with a name.
TEST(Strangers, RandomFramesOfAnAdmittedRankEndTheRunInOrder) {
  test::Dice dice(9);
  const std::string kinds("CHWRSAPQBFE?", 12);
  for (int i = 0; i < 40; ++i) {
    const std::string failure = first_rank_says([&](const FirstAddress& first) {
      Connection connection = joined_as_one(first);
      for (int n = 0; n < 30; ++n) {
        const auto kind =
            static_cast<FrameKind>(kinds[static_cast<std::size_t>(dice.between(0, 11))]);
        std::string bytes(static_cast<std::size_t>(dice.between(0, 40)), '\0');
        for (char& byte : bytes) byte = static_cast<char>(dice.between(0, 255));
        if (dice.between(0, 2) == 0) bytes = joined({"0", bytes});
        connection.send(kind, static_cast<std::uint64_t>(dice.between(0, 3)), bytes);
      }
      connection.socket = Socket();
    });
    EXPECT_FALSE(failure.empty());
  }
}

TEST(Strangers, WordsOfOthersDoNotCommandTheTerminal) {
  const std::string failure = first_rank_says([&](const FirstAddress& first) {
    Connection connection = joined_as_one(first);
    connection.send(FrameKind::kFailed, 0, "rank 1: \x1b[2J gone");
    hold_until_closed(connection);
  });
  EXPECT_EQ(failure, "rank 1:  [2J gone");
}

// A rank that floods rank 0 with small frames and reads nothing is one rank, not all of its time.
TEST(Strangers, ARankThatAsksAndDoesNotReadIsNamed) {
  const std::string failure = first_rank_says([&](const FirstAddress& first) {
    Connection connection = joined_as_one(first);
    pollfd other{connection.socket.fd(), POLLRDHUP, 0};
    while (::poll(&other, 1, 1) == 0) {
      if (connection.unsent.empty()) {
        for (int i = 0; i < 100; ++i) connection.send(FrameKind::kPing, 1);
      }
      connection.flush();
    }
  });
  EXPECT_NE(failure.find("rank 1"), std::string::npos) << failure;
  EXPECT_NE(failure.find("does not read the answers"), std::string::npos) << failure;
}

// A rank 0 that is none: it has no token, so that its welcome and all that follows is not believed.
TEST(Strangers, AFalseRankZeroIsNotBelieved) {
  const Socket listener = listen_on(kLoopback, 0);
  std::atomic<bool> done = false;
  std::thread impostor([&] {
    std::vector<Connection> held;
    while (!done) {
      bool exhausted = false;
      Connection connection;
      connection.socket = accept_now(listener, exhausted);
      if (connection) {
        connection.send(FrameKind::kChallenge, 0, std::string(kNonceBytes, 'n'));
        connection.seal("a guess", Seal::Way::kToCaller);
        connection.send(FrameKind::kWelcome);
        connection.send(FrameKind::kAll, 0, "");
        held.push_back(std::move(connection));
      }
      std::this_thread::sleep_for(1ms);
    }
  });
  RankEnvironment place;
  place.rank = 1;
  place.ranks = 2;
  place.rendezvous = RankEnvironment::Rendezvous::kAddress;
  place.host = kLoopback;
  place.port = port_of(listener);
  place.token = kToken;
  ControlChannelSettings settings;
  settings.timeout = 1s;
  try {
    const ControlChannel channel(place, settings);
    ADD_FAILURE() << "it was believed";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("does not know this run's token"), std::string::npos)
        << error.what();
  }
  done = true;
  impostor.join();
}

// One that is of the run and says nonsense.
TEST(Strangers, NonsenseOfRankZeroIsNamed) {
  const std::vector<std::function<void(Connection&)>> breaches{
      [](Connection& c) { c.send(FrameKind::kAll, 0, ""); },
      [](Connection& c) { c.send(FrameKind::kAll, 0, joined({"one"})); },
      [](Connection& c) {
        c.send(FrameKind::kAll, 1, joined({"", ""}));
      },
      [](Connection& c) { c.send(FrameKind::kPong, 0, std::string(8, '\0')); },
      [](Connection& c) {
        c.send(FrameKind::kShare, 0, joined({"0", ""}));
      }};
  for (const auto& breach : breaches) {
    RankEnvironment place;
    place.rank = 1;
    place.ranks = 2;
    place.rendezvous = RankEnvironment::Rendezvous::kAddress;
    place.host = kLoopback;
    place.token = kToken;
    const Socket listener = listen_on(kLoopback, 0);
    place.port = port_of(listener);
    std::thread zero([&] {
      Callers callers(kToken, 2);
      std::optional<Connection> rank;
      while (!rank) {
        callers.accept_from(listener);
        callers.hear([&](const Introduction&, Connection& c) { rank = std::move(c); });
      }
      rank->send(FrameKind::kWelcome);
      rank->inbox.expect("SBFE", 2);
      frame_of(*rank);
      breach(*rank);
      hold_until_closed(*rank);
    });
    std::string failure;
    try {
      ControlChannelSettings settings;
      settings.timeout = 20s;
      ControlChannel channel(place, settings);
      channel.from_first("");
    } catch (const MachineError& error) {
      failure = error.what();
    }
    zero.join();
    EXPECT_EQ(failure.rfind("rank 0 (127.0.0.1:", 0), 0u) << failure;
  }
}

// Values that others use as places and numbers.
TEST(Strangers, ValuesAreCheckedBeforeTheyAreUsed) {
  const auto gathered = [](const std::string& value,
                           const std::function<void(ControlChannel&)>& body) {
    return first_rank_says(
        [&](const FirstAddress& first) {
          Connection connection = joined_as_one(first);
          connection.send(FrameKind::kShare, 0, joined({"0", value}));
          hold_until_closed(connection);
        },
        20s, body);
  };
  const auto broken = [](const std::string& failure) {
    return failure.rfind("rank 1 (", 0) == 0 &&
           failure.find("broke the protocol") != std::string::npos;
  };
  const auto spans = [](ControlChannel& channel) {
    exchange_timelines(channel, {{0, 0, 0, 0.0, 1.0}, {0, 1, 0, 1.0, 2.0}}, 1, {}, {});
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const run::Span& span : std::vector<run::Span>{{1, 0, 1, 0, 1},
                                                      {-1, 0, 1, 0, 1},
                                                      {0, 2, 1, 0, 1},
                                                      {0, -1, 1, 0, 1},
                                                      {0, 0, 0, 0, 1},
                                                      {0, 0, 7, 0, 1},
                                                      {0, 0, 1, nan, 1}}) {
    EXPECT_TRUE(broken(gathered(bytes_of(std::vector{span}), spans)));
  }
  EXPECT_TRUE(broken(gathered("half", spans)));
  const auto clocks = [](ControlChannel& channel) { worst_clock_error(channel, {}, {}); };
  for (const std::string value : {"", "short", "sixteen letters!"}) {
    EXPECT_TRUE(broken(gathered(value, clocks))) << value;
  }
}

// More of them than there may be, or than there are descriptors for.
TEST(Strangers, ACrowdThatSaysNothingKeepsNoRankOut) {
#ifdef SYNCLINE_SANITIZED
  GTEST_SKIP() << "the sanitizer checks types by a pipe, and no descriptor is free for one here";
#endif
  const Scratch scratch;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t crowd = ::fork();
  if (crowd == 0) {
    ::close(ends[1]);
    const RankEnvironment place = place_at(scratch.path("meet"), 1, 2);
    FirstRank first(place);
    std::optional<FirstAddress> found;
    while (!(found = first.now())) std::this_thread::sleep_for(1ms);
    std::vector<Socket> held;
    for (int i = 0; i < 800; ++i) {
      held.push_back(connect_once(found->host, found->port, LiveClock::now() + 1s));
    }
    char end = 0;
    [[maybe_unused]] const auto n = ::read(ends[0], &end, 1);
    ::_exit(0);
  }
  ::close(ends[0]);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit few = before;
  few.rlim_cur = 60;
  ::setrlimit(RLIMIT_NOFILE, &few);
  Failures failures(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        if (rank == 1) std::this_thread::sleep_for(1s);  // the crowd is there
        ControlChannelSettings settings;
        settings.timeout = 20s;
        ControlChannel channel(place_at(scratch.path("meet"), rank, 2), settings);
        channel.barrier();
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ::setrlimit(RLIMIT_NOFILE, &before);
  ::close(ends[1]);
  ::waitpid(crowd, nullptr, 0);
  EXPECT_EQ(failures, Failures(2));
}

// Somebody on this machine is at ports before the ranks are. On a busy machine it takes more than a
// few turns until they have been at one.
TEST(Strangers, WhoCallsFirstIsNoPeer) {
  const test::Watcher watcher;
  std::atomic<bool> enough = false;
  const auto patience = LiveClock::now() + 60s;
  const Failures failures = test::run_ranks(4, [&](ControlChannel& channel) {
    for (int turn = 0; !enough; ++turn) {
      const auto pairs = connect_pairs(channel, "turn " + std::to_string(turn));
      for (int rank = 0; rank < 4; ++rank) {
        const Socket& pair = pairs[static_cast<std::size_t>(rank)];
        ASSERT_EQ(static_cast<bool>(pair), rank != channel.rank());
        if (!pair) continue;
        std::size_t sent = 0;
        send_some(pair, std::string(1, static_cast<char>('a' + channel.rank())), sent);
      }
      for (int rank = 0; rank < 4; ++rank) {
        if (rank == channel.rank()) continue;
        char byte = 0;
        while (::recv(pairs[static_cast<std::size_t>(rank)].fd(), &byte, 1, 0) < 0) {
          std::this_thread::sleep_for(1ms);
        }
        EXPECT_EQ(byte, 'a' + rank);
      }
      channel.barrier();
      if (channel.rank() == 0) {
        enough = turn >= 4 && (watcher.calls() > 0 || LiveClock::now() > patience);
      }
      channel.barrier();
    }
  });
  EXPECT_EQ(failures, Failures(4));
  EXPECT_GT(watcher.calls(), 0);
}

}  // namespace
}  // namespace syncline::live
