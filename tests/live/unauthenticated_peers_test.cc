// Ranks among unauthenticated peers: who does not know the run's token is dropped and does no harm,
// whatever it says, repeats or holds; and a rank that says what no rank says is named and ends the
// run in order. Ranks are threads, on this machine's own addresses.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include <atomic>
#include <limits>

#include "live/control_channel.h"
#include "live/figures.h"
#include "live/live_executor.h"
#include "tests/support/dice.h"
#include "tests/support/ranks.h"
#include "tests/support/watcher.h"

namespace syncline::live {
namespace {

using namespace std::chrono_literals;
using Kind = MessageKind;
using test::Failures;
using test::place_at;
using test::Played;
using test::run_each;
using test::Scratch;

const std::string kToken(64, 'a');

// Rank 0's end of the channel, and where it is called.
struct Door {
  FirstAddress place(const std::string& token = kToken) const {
    const std::string end = own_end(listener.fd());
    return {parse_address(end), parse_port(end), token};
  }
  // The next that is said here within `time`.
  std::optional<Message> heard(std::chrono::milliseconds time = 20s) {
    for (const auto until = LiveClock::now() + time; LiveClock::now() < until;) {
      while (messenger.event()) {
      }
      if (auto message = messenger.next()) return message;
      messenger.wait(wake.fd(), 5ms);
    }
    return std::nullopt;
  }
  Socket listener = listen_on(kLoopback, 0);
  Socket wake{::eventfd(0, EFD_CLOEXEC)};
  Messenger messenger{listener, kToken, 2};
};

// A connection that leads to a door by way of somebody who keeps what the caller says, or changes
// one byte of it.
class Tapped {
 public:
  explicit Tapped(const FirstAddress& door, std::size_t changed = std::string::npos)
      : changed_(changed), door_(test::called(test::end_of(door))), thread_([this] { pass(); }) {}
  ~Tapped() {
    done_ = true;
    thread_.join();
  }
  FirstAddress place() const { return {kLoopback, parse_port(own_end(listener_.fd())), kToken}; }
  std::string said() {
    done_ = true;
    thread_.join();
    thread_ = std::thread([] {});
    return said_;
  }

 private:
  void pass() {
    Socket caller;
    while (!done_ && !caller) {
      std::this_thread::sleep_for(1ms);
      caller = try_accept(listener_);
    }
    bool open = true;
    while (!done_ && open) open = hand(caller, door_, true) && hand(door_, caller, false);
  }
  // False once one side has closed.
  bool hand(const Socket& from, const Socket& to, bool kept) {
    pollfd waiting{from.fd(), POLLIN, 0};
    if (::poll(&waiting, 1, 1) <= 0) return true;
    char block[4096];
    const auto n = ::recv(from.fd(), block, sizeof block, 0);
    if (n <= 0) return false;
    std::string bytes(block, static_cast<std::size_t>(n));
    if (kept) {
      const std::size_t at = changed_ - said_.size();
      said_ += bytes;
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    }
    test::say(to, bytes);
    return true;
  }

  const std::size_t changed_;
  const Socket listener_ = listen_on(kLoopback, 0);
  const Socket door_;
  std::string said_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

TEST(Messages, ComeAsTheyWereSent) {
  EXPECT_NE(new_token(), new_token());
  test::Dice dice(7);
  Door door;
  Played rank(door.place(), 1, "2 key");
  EXPECT_EQ(door.heard()->bytes, "2 key");
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::string bytes(static_cast<std::size_t>(dice.between(0, i % 100 == 0 ? 65536 : 40)),
                            'x');
    rank.say(Kind::kShare, i, bytes);
    const auto here = door.heard();
    ASSERT_TRUE(here);
    EXPECT_EQ(here->number, i);
    ASSERT_EQ(here->bytes, bytes);
    EXPECT_EQ(door.messenger.send(here->from, Kind::kAll, i, bytes), Messenger::Sent::kYes);
    ASSERT_EQ(rank.heard(Kind::kAll)->bytes, bytes);
  }
  EXPECT_EQ(door.messenger.send("nobody", Kind::kHeartbeat), Messenger::Sent::kGone);
}

// Any byte of what a rank says, from the first on: what is heard is what was said, or nothing.
TEST(Messages, AreRefusedIfTamperedWith) {
  test::Dice dice(8);
  Door door;
  const std::string secret = "a value that nobody else is to read";
  const auto heard = [&](Tapped& way) {
    Messenger rank;
    const FirstAddress place = way.place();
    rank.call(place.host, place.port, place.token);
    rank.send("", Kind::kShare, 3, secret);
    const auto message = door.heard(200ms);
    EXPECT_TRUE(!message || message->bytes == secret);
    return message.has_value();
  };
  std::string said;
  {
    Tapped way(door.place());
    EXPECT_TRUE(heard(way));
    said = way.said();
  }
  EXPECT_EQ(said.find(secret), std::string::npos);
  EXPECT_EQ(said.find("Share"), std::string::npos);
  for (int i = 0; i < 25; ++i) {
    // Behind the greeting and what fills the first command up.
    const int at = dice.between(146, static_cast<int>(said.size()) - 1);
    Tapped way(door.place(), static_cast<std::size_t>(at));
    EXPECT_FALSE(heard(way)) << "byte " << at << " of " << said.size();
  }
}

// All that a rank has said, once more.
TEST(UnauthenticatedPeers, AReplayedConversationIsWorthNothing) {
  Door door;
  std::string said;
  {
    Tapped way(door.place());
    Played rank(way.place(), 1, "2 key");
    ASSERT_TRUE(door.heard());
    said = way.said();
  }
  const Socket again = test::called(test::end_of(door.place()));
  test::say(again, said);
  EXPECT_FALSE(door.heard(1500ms));
  EXPECT_EQ(test::heard_from(again).find("key"), std::string::npos);
  EXPECT_NE(door.messenger.refused_callers_text().find("caller"), std::string::npos);
}

TEST(UnauthenticatedPeers, WithoutTheTokenNobodyIsHeard) {
  Door door;
  // Another token, no token at all, and a key pair that is not of the token.
  Messenger guess;
  guess.call(kLoopback, door.place().port, "a guess");
  guess.send("", Kind::kHello, 1, "2 ");
  const std::unique_ptr<void, int (*)(void*)> context(zmq_ctx_new(), zmq_ctx_term);
  for (const bool keys : {false, true}) {
    const std::unique_ptr<void, int (*)(void*)> plain(zmq_socket(context.get(), ZMQ_DEALER),
                                                      zmq_close);
    const int now = 0;
    zmq_setsockopt(plain.get(), ZMQ_LINGER, &now, sizeof now);
    char open[41];
    char secret[41];
    ASSERT_EQ(zmq_curve_keypair(open, secret), 0);
    if (keys) {
      for (const int option : {ZMQ_CURVE_SERVERKEY, ZMQ_CURVE_PUBLICKEY}) {
        zmq_setsockopt(plain.get(), option, open, sizeof open);
      }
      zmq_setsockopt(plain.get(), ZMQ_CURVE_SECRETKEY, secret, sizeof secret);
    }
    zmq_connect(plain.get(), ("tcp://" + test::end_of(door.place())).c_str());
    zmq_send(plain.get(), "H", 1, 0);
    EXPECT_FALSE(door.heard(300ms));
  }
  EXPECT_NE(
      door.messenger.refused_callers_text().find("callers without this run's token came, the last "
                                                 "from 127.0.0.1:"),
      std::string::npos);
}

void wait_twice(ControlChannel& channel) {
  channel.barrier(ControlChannel::kPatient);
  channel.barrier(ControlChannel::kPatient);
}

// Rank 0 with what it does, and somebody who plays rank 1.
std::string first_rank_says(const std::function<void(const FirstAddress&)>& other,
                            const std::function<void(ControlChannel&)>& body = wait_twice) {
  const Scratch scratch;
  const std::string file = scratch.path("meet");
  std::thread played([&] { other(test::published_at(place_at(file, 1, 2))); });
  const Failures failures = run_each({{place_at(file, 0, 2), "", 20s, body}});
  played.join();
  return failures.front();
}

// The same of a rank 1 that is welcome, says this and waits for the end.
std::string first_rank_says_of(const std::function<void(Played&)>& saying,
                               const std::function<void(ControlChannel&)>& body = wait_twice) {
  const auto other = [&](const FirstAddress& first) {
    Played rank(first, 1, "2 ");
    rank.heard(Kind::kWelcome);
    saying(rank);
    rank.hold();
  };
  return first_rank_says(other, body);
}

TEST(UnauthenticatedPeers, AnAdmittedRankThatBreaksTheProtocolIsNamed) {
  const std::vector<std::function<void(Played&)>> breaches{
      [](Played& r) { r.say(Kind::kShare, 0, ""); },
      [](Played& r) { r.say(Kind::kShare, 0, "7 bytes"); },
      [](Played& r) { r.say(Kind::kShare, 0, test::share("", -1)); },
      [](Played& r) { r.say(Kind::kShare, 5, test::share("")); },
      [](Played& r) {
        r.say(Kind::kShare, 0, test::share(""));
        r.say(Kind::kShare, 0, test::share(""));
      },
      [](Played& r) {
        for (std::size_t sent = 0; sent <= kMaxValue; sent += kPieceBytes) {
          r.say(Kind::kPiece, 0, std::string(kPieceBytes, 'x'));
        }
      },
      [](Played& r) { r.say(Kind::kAll, 0, ""); },
      [](Played& r) { r.say(Kind::kPong, 0, std::string(8, '\0')); },
      [](Played& r) { r.say(Kind::kHeartbeat, 0, "x"); },
      [](Played& r) { r.say(Kind::kHello, 1, "2 "); },
      [](Played& r) { r.say(static_cast<Kind>('?')); }};
  for (std::size_t i = 0; i < breaches.size(); ++i) {
    const std::string failure = first_rank_says_of(breaches[i]);
    EXPECT_EQ(failure.rfind("rank 1 (", 0), 0u) << i << ": " << failure;
    EXPECT_NE(failure.find(") broke the protocol: "), std::string::npos) << i << ": " << failure;
  }
}

// It is refused at its head, and nothing of it is kept.
TEST(UnauthenticatedPeers, AMessageThatIsTooLongEndsItsLine) {
  const std::string failure = first_rank_says_of(
      [](Played& rank) { rank.say(Kind::kFailed, 0, std::string(std::size_t{100} << 20U, 'x')); });
  EXPECT_EQ(failure, "rank 1 ended in the middle of the run");
}

// Whatever an admitted rank says, rank 0 ends in order, in time, and with a name.
TEST(UnauthenticatedPeers, RandomMessagesOfAnAdmittedRankEndTheRunInOrder) {
  test::Dice dice(9);
  const std::string kinds("HWRVSAPQBFE?", 12);
  for (int i = 0; i < 40; ++i) {
    const std::string failure = first_rank_says([&](const FirstAddress& first) {
      Played rank(first, 1, "2 ");
      for (int n = 0; n < 30; ++n) {
        const auto kind = static_cast<Kind>(kinds[static_cast<std::size_t>(dice.between(0, 11))]);
        std::string bytes(static_cast<std::size_t>(dice.between(0, 40)), '\0');
        for (char& byte : bytes) byte = static_cast<char>(dice.between(0, 255));
        if (dice.between(0, 2) == 0) bytes = test::share(bytes);
        rank.say(kind, static_cast<std::uint64_t>(dice.between(0, 3)), bytes);
      }
      rank.wait();
    });
    EXPECT_FALSE(failure.empty());
  }
}

TEST(UnauthenticatedPeers, WordsOfOthersDoNotCommandTheTerminal) {
  const std::string failure =
      first_rank_says_of([](Played& rank) { rank.say(Kind::kFailed, 0, "rank 1: \x1b[2J gone"); });
  EXPECT_EQ(failure, "rank 1:  [2J gone");
}

// A rank that floods rank 0 with small messages and reads nothing is one rank, not all of its time.
TEST(UnauthenticatedPeers, ARankThatAsksAndDoesNotReadIsNamed) {
  std::atomic<bool> named = false;
  const auto ask = [&](const FirstAddress& first) {
    Played rank(first, 1, "2 ");
    rank.heard(Kind::kWelcome);
    while (!named) {
      for (int i = 0; i < 100; ++i) rank.say(Kind::kPing, 1);
      std::this_thread::sleep_for(1ms);
    }
  };
  const std::string failure = first_rank_says(ask, [&](ControlChannel& channel) {
    EXPECT_THROW(channel.barrier(ControlChannel::kPatient), MachineError);
    named = true;
    channel.check();
  });
  EXPECT_NE(failure.find("rank 1"), std::string::npos) << failure;
  EXPECT_NE(failure.find("does not read the answers"), std::string::npos) << failure;
}

RankEnvironment rank_one_of(const FirstAddress& first) {
  RankEnvironment place;
  place.rank = 1;
  place.ranks = 2;
  place.rendezvous = RankEnvironment::Rendezvous::kAddress;
  place.host = first.host;
  place.port = first.port;
  place.token = kToken;
  return place;
}

// A rank 0 that is none: one with another token, and one that takes every caller and says nothing.
TEST(UnauthenticatedPeers, AFalseRankZeroIsNotBelieved) {
  for (const bool silent : {false, true}) {
    const Socket listener = listen_on(kLoopback, 0);
    std::optional<Messenger> impostor;
    if (!silent) impostor.emplace(listener, "a guess", 2);
    const std::string end = own_end(listener.fd());
    // A refusal takes a handshake, which a busy machine may hold up.
    const auto& [timeout, limit] = silent ? std::pair(2s, "2 s") : std::pair(6s, "6 s");
    const std::string text =
        run_each({{rank_one_of({parse_address(end), parse_port(end), ""}), "", timeout}}).front();
    EXPECT_EQ(text.rfind("rank 0 did not join within " + std::string(limit), 0), 0U) << text;
    EXPECT_EQ(text.find("does not know this run's token") == std::string::npos, silent) << text;
    EXPECT_FALSE(impostor && impostor->next());
  }
}

// One that is of the run and says nonsense.
TEST(UnauthenticatedPeers, NonsenseOfRankZeroIsNamed) {
  using Breach = std::function<void(Messenger&, const std::string&)>;
  const std::vector<Breach> breaches{
      [](Messenger& m, const std::string& to) { m.send(to, Kind::kAll, 0, ""); },
      [](Messenger& m, const std::string& to) { m.send(to, Kind::kAll, 1, std::string(16, '\0')); },
      [](Messenger& m, const std::string& to) {
        m.send(to, Kind::kAll, 0, std::string(16, '\xff'));
      },
      [](Messenger& m, const std::string& to) {
        for (int i = 0; i < 2; ++i) m.send(to, Kind::kAll, 0, std::string(16, '\0'));
      },
      [](Messenger& m, const std::string& to) { m.send(to, Kind::kPong, 0, std::string(8, '\0')); },
      [](Messenger& m, const std::string& to) { m.send(to, Kind::kWelcome); },
      [](Messenger& m, const std::string& to) { m.send(to, Kind::kShare, 0, test::share("")); }};
  for (const auto& breach : breaches) {
    Door door;
    std::atomic<bool> named = false;
    std::thread zero([&] {
      const auto hello = door.heard();
      door.messenger.send(hello->from, Kind::kWelcome);
      while (door.heard()->kind != Kind::kShare) {
      }
      breach(door.messenger, hello->from);
      while (!named) door.heard(5ms);
    });
    const auto body = [](ControlChannel& channel) {
      channel.from_first("");
      channel.barrier(ControlChannel::kPatient);
    };
    const std::string failure = run_each({{rank_one_of(door.place()), "", 20s, body}}).front();
    named = true;
    zero.join();
    EXPECT_EQ(failure.rfind("rank 0 (127.0.0.1:", 0), 0u) << failure;
  }
}

// Values that others use as places and numbers.
TEST(UnauthenticatedPeers, ValuesAreCheckedBeforeTheyAreUsed) {
  const auto broken = [](const std::string& value,
                         const std::function<void(ControlChannel&)>& body) {
    const std::string failure = first_rank_says_of(
        [&](Played& rank) { rank.say(Kind::kShare, 0, test::share(value)); }, body);
    return failure.rfind("rank 1 (", 0) == 0 &&
           failure.find("broke the protocol") != std::string::npos;
  };
  const auto spans = [](ControlChannel& channel) {
    plan::Plan two;
    two.ops.resize(2);
    exchange_timelines(channel, {{0, 0, 0, 0.0, 1.0}, {0, 1, 0, 1.0, 2.0}}, two, 1, {}, {});
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const run::Span& span : std::vector<run::Span>{{1, 0, 1, 0, 1},
                                                      {-1, 0, 1, 0, 1},
                                                      {0, 2, 1, 0, 1},
                                                      {0, -1, 1, 0, 1},
                                                      {0, 0, 0, 0, 1},
                                                      {0, 0, 7, 0, 1},
                                                      {0, 0, 1, nan, 1}}) {
    EXPECT_TRUE(broken(bytes_of(std::vector{span}), spans));
  }
  EXPECT_TRUE(broken("half", spans));
  const auto clocks = [](ControlChannel& channel) { worst_clock_error(channel, {}, {}); };
  for (const std::string value : {"", "short", "sixteen letters!"}) {
    EXPECT_TRUE(broken(value, clocks)) << value;
  }
}

// More of them than rank 0 has descriptors for.
TEST(UnauthenticatedPeers, ACrowdThatSaysNothingKeepsNoRankOut) {
  const Scratch scratch;
  const auto failure_of = [&](int rank) {
    return run_each({{place_at(scratch.path("meet"), rank, 2), "", 30s}}).front();
  };
  const pid_t first = ::fork();
  if (first == 0) {
    const rlimit few{60, 60};
    ::setrlimit(RLIMIT_NOFILE, &few);
    const std::string failure = failure_of(0);
    if (!failure.empty()) std::fprintf(stderr, "rank 0: %s\n", failure.c_str());
    ::_exit(failure.empty() ? 0 : 3);
  }
  const std::string end = test::end_of(test::published_at(place_at(scratch.path("meet"), 1, 2)));
  std::vector<Socket> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(bind_socket(kLoopback, 0));
    begin_call(crowd.back(), end);
  }
  std::this_thread::sleep_for(500ms);  // the crowd is there
  EXPECT_EQ(failure_of(1), "");
  int status = 0;
  ::waitpid(first, &status, 0);
  EXPECT_EQ(status, 0);
}

// Somebody on this machine is at ports before the ranks are. On a busy machine it takes more than a
// few turns until they have been at one.
TEST(UnauthenticatedPeers, WhoCallsFirstIsNoPeer) {
  const test::Watcher watcher;
  std::atomic<bool> enough = false;
  const auto wait_limit = LiveClock::now() + 60s;
  const Failures failures = test::run_ranks(4, [&](ControlChannel& channel) {
    for (int turn = 0; !enough; ++turn) {
      const auto pairs = connect_pairs(channel);
      for (int rank = 0; rank < 4; ++rank) {
        const Socket& pair = pairs[static_cast<std::size_t>(rank)];
        ASSERT_EQ(static_cast<bool>(pair), rank != channel.rank());
        if (!pair) continue;
        test::say(pair, std::string(1, static_cast<char>('a' + channel.rank())));
      }
      for (int rank = 0; rank < 4; ++rank) {
        if (rank == channel.rank()) continue;
        EXPECT_EQ(test::heard_from(pairs[static_cast<std::size_t>(rank)], 1),
                  std::string(1, static_cast<char>('a' + rank)));
      }
      channel.barrier();
      if (channel.rank() == 0) {
        enough = turn >= 4 && (watcher.calls() > 0 || LiveClock::now() > wait_limit);
      }
      channel.barrier();
    }
  });
  EXPECT_EQ(failures, Failures(4));
  EXPECT_GT(watcher.calls(), 0);
}

}  // namespace
}  // namespace syncline::live
