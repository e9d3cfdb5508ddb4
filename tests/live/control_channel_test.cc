// The ranks' control channel: what gatherings give, and that whichever rank fails, does not join,
// or is no rank at all is named to the others or does them no harm. Ranks are threads.
#include "live/control_channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <functional>

#include "tests/support/ranks.h"

namespace syncline::live {
namespace {

using namespace std::chrono_literals;
using test::Failures;
using test::place_at;
using test::Played;
using test::Rank;
using test::run_each;
using test::run_ranks;
using test::Scratch;

void barrier(ControlChannel& channel) { channel.barrier(); }

class LiveRanks : public testing::Test {
 protected:
  RankEnvironment place(int rank, int ranks) const {
    return place_at(scratch.path("meet"), rank, ranks);
  }
  FirstAddress published() const { return test::published_at(place(1, 2)); }
  Scratch scratch;
};

std::string value_of(int rank, int turn, std::size_t size) {
  std::string value(size, static_cast<char>('a' + rank + 7 * turn));
  for (std::size_t i = 0; i < size; i += 977) value[i] = static_cast<char>(i % 31 + i % 7);
  return value;
}

class Gathering : public testing::TestWithParam<int> {};

TEST_P(Gathering, GivesEveryonesValuesInOrder) {
  const int ranks = GetParam();
  const std::vector<std::size_t> sizes{0, 1, 17, 3000000, 0, 300000, 8};
  const Failures failures = run_ranks(ranks, [&](ControlChannel& channel) {
    EXPECT_EQ(channel.ranks(), ranks);
    for (int turn = 0; turn < 7; ++turn) {
      const std::size_t size = sizes[static_cast<std::size_t>(turn)];
      // Of different lengths, and ranks arrive in another order each time.
      const auto length = [&](int rank) { return size == 0 && rank == 1 ? 3 : size; };
      std::this_thread::sleep_for(std::chrono::milliseconds((channel.rank() * 5 + turn * 3) % 7));
      const auto all = channel.gather(value_of(channel.rank(), turn, length(channel.rank())));
      ASSERT_EQ(all.size(), static_cast<std::size_t>(ranks));
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_TRUE(all[static_cast<std::size_t>(rank)] == value_of(rank, turn, length(rank)))
            << "rank " << rank << ", turn " << turn;
      }
      EXPECT_TRUE(channel.from_first(value_of(channel.rank(), turn, size)) ==
                  value_of(0, turn, size));
    }
  });
  EXPECT_EQ(failures, Failures(static_cast<std::size_t>(ranks)));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Gathering, testing::Values(1, 2, 3, 7));

TEST(ControlChannelBarrier, NoRankPassesBeforeTheLastArrives) {
  std::atomic<int> come = 0;
  const Failures failures = run_ranks(4, [&](ControlChannel& channel) {
    for (int turn = 1; turn <= 20; ++turn) {
      ++come;
      channel.barrier();
      EXPECT_GE(come, 4 * turn);
      channel.barrier();
    }
  });
  EXPECT_EQ(failures, Failures(4));
}

TEST(ControlChannelClock, OffsetsOnOneMachineAreWithinTheirError) {
  const Failures failures = run_ranks(3, [](ControlChannel& channel) {
    const ClockOffset offset = channel.clock();
    channel.barrier();
    EXPECT_LE(std::abs(offset.add), offset.error) << "one machine has one clock";
    EXPECT_LT(offset.error, 5) << "no longer than an exchange can take";
    EXPECT_EQ(offset.error == 0, channel.rank() == 0);
  });
  EXPECT_EQ(failures, Failures(3));
}

// The longest wait limit counts, whoever has it.
TEST_F(LiveRanks, AreWaitedForAsLongAsOneOfThemSays) {
  const auto body = [](ControlChannel& channel) {
    if (channel.rank() == 2) std::this_thread::sleep_for(800ms);
    channel.barrier(channel.rank() == 1 ? 20s : 0s);
  };
  EXPECT_EQ(run_ranks(3, body, 300ms), Failures(3));
}

// Patience is for work that takes long; a rank that the others wait for otherwise is named.
TEST_F(LiveRanks, ARankThatDoesNotReachTheBarrier) {
  const auto body = [](ControlChannel& channel) {
    if (channel.rank() == 2) std::this_thread::sleep_for(1200ms);
    channel.barrier(ControlChannel::kPatient);
    if (channel.rank() == 2) std::this_thread::sleep_for(2s);
    channel.barrier();
  };
  const std::string text = "rank 2 did not reach the barrier within 1 s";
  EXPECT_EQ(run_ranks(3, body, 1s), Failures({text, text, text}));
}

TEST_F(LiveRanks, RanksThatNeverJoin) {
  EXPECT_EQ(run_each({{place(0, 2), "", 300ms}}), Failures({"rank 1 did not join within 0.3 s"}));
  const std::string two = "ranks 1, 3 did not join within 0.5 s";
  EXPECT_EQ(run_each({{place(0, 4), "", 500ms}, {place(2, 4), "", 20s}}), Failures({two, two}));
  const Failures first = run_each({{place(1, 2), "", 300ms}});
  EXPECT_EQ(first.front().rfind("rank 0 did not join within 0.3 s", 0), 0u) << first.front();
  EXPECT_TRUE(scratch.empty()) << "files are left lying about";
}

TEST_F(LiveRanks, OneStartedTwice) {
  const Failures failures = run_each(
      {{place(0, 3)}, {place(1, 3)}, {place(1, 3)}, {place(2, 3), "", 20s, barrier, 300ms}});
  EXPECT_EQ(failures[0], "");
  EXPECT_EQ(failures[3], "");
  EXPECT_EQ(failures[1] + failures[2], "rank 1 was started twice; this one ends");
}

TEST_F(LiveRanks, RankZeroStartedTwice) {
  const Failures failures =
      run_each({{place(0, 2)}, {place(0, 2)}, {place(1, 2), "", 20s, barrier, 300ms}});
  EXPECT_EQ(failures[2], "");
  EXPECT_EQ((failures[0] + failures[1]).rfind("rank 0 was started twice; this one ends", 0), 0u)
      << failures[0] << failures[1];
}

TEST_F(LiveRanks, AKilledRunsRemainsAreNoRank) {
  // Another program listens there now; rank 1 may have come first.
  const Socket another = listen_on(kLoopback, 0);
  const std::string line =
      "127.0.0.1 " + std::to_string(parse_port(own_end(another.fd()))) + " 0123456789abcdef\n";
  for (const auto late : {0ms, 200ms}) {
    test::write_text(scratch.path("meet"), line);
    ASSERT_EQ(::chmod(scratch.path("meet").c_str(), 0600), 0);
    EXPECT_EQ(run_each({{place(0, 2), "", 20s, barrier, 200ms - late},
                        {place(1, 2), "", 20s, barrier, late}}),
              Failures(2));
    EXPECT_TRUE(scratch.empty());
  }
}

TEST_F(LiveRanks, ADifferentNumberOfRanksOrAnotherKey) {
  const std::string number = "rank 1 was started for 2 ranks, rank 0 for 3";
  // The third comes when the others have fallen out already.
  EXPECT_EQ(run_each({{place(0, 3)}, {place(1, 2)}, {place(2, 3), "", 20s, {}, 500ms}}),
            Failures({number, number, number}));
  const std::string key = "rank 1 was started with another scenario or other options than rank 0";
  EXPECT_EQ(run_each({{place(0, 2), "a"}, {place(1, 2), "b"}}), Failures({key, key}));
}

// With the ranks, not in order: its end closes as a killed process's would.
TEST_F(LiveRanks, ARankThatVanishes) {
  for (const int gone : {0, 1, 2}) {
    const auto body = [&](ControlChannel& channel) {
      channel.barrier();
      if (channel.rank() != gone) {
        channel.barrier();
        channel.barrier();
      }
    };
    const std::string text = "rank " + std::to_string(gone) + " ended before the others";
    Failures expected(3, text);
    expected[static_cast<std::size_t>(gone)] = "";
    EXPECT_EQ(run_ranks(3, body), expected);
  }
}

TEST_F(LiveRanks, ABrokenConnectionEndsTheRank) {
  std::thread killed([&] {
    Played line(published(), 1, "3 ");
    EXPECT_TRUE(line.heard(MessageKind::kWelcome));
    std::this_thread::sleep_for(300ms);
  });
  const auto wait = [](ControlChannel& channel) { channel.barrier(ControlChannel::kPatient); };
  const std::string text = "rank 1 ended in the middle of the run";
  EXPECT_EQ(run_each({{place(0, 3), "", 20s, wait}, {place(2, 3), "", 20s, wait}}),
            Failures({text, text}));
  killed.join();
}

// It has met the others and says no more; and it reads nothing, however much it is sent.
TEST_F(LiveRanks, ARankThatIsSilent) {
  std::atomic<bool> done = false;
  std::thread stopped([&] {
    Played line(published(), 1, "3 ");
    EXPECT_TRUE(line.heard(MessageKind::kWelcome));
    line.say(MessageKind::kShare, 0, test::share(""));
    while (!done) std::this_thread::sleep_for(10ms);
  });
  const auto talk = [](ControlChannel& channel) {
    channel.gather(std::string(10000000, 'x'), ControlChannel::kPatient);
    channel.barrier(ControlChannel::kPatient);
  };
  const std::string text = "rank 1 has been silent for 1 s: it hangs, or its link is cut";
  EXPECT_EQ(run_each({{place(0, 3), "", 1s, talk}, {place(2, 3), "", 1s, talk}}),
            Failures({text, text}));
  done = true;
  stopped.join();
}

TEST_F(LiveRanks, UnauthenticatedPeersDoNoHarm) {
  // What ZeroMQ begins with, up to the mechanism; the rest of it, and commands.
  const std::string head = "\xff" + std::string(8, '\0') + "\x7f" + std::string("\3\0", 2);
  const auto greeting = [&](std::string mechanism) {
    mechanism.resize(20, '\0');
    return head + mechanism + std::string(32, '\0');
  };
  const auto command = [](const std::string& length, const std::string& bytes) {
    return std::string(length.size() == 1 ? "\4" : "\6") + length + bytes;
  };
  const std::string hello = "\5HELLO" + std::string("\1\0", 2) + std::string(192, 'x');
  std::vector<std::thread> unauthenticated_peers;
  const std::vector<std::string> sayings{
      "",
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
      std::string(200000, '\xff'),
      head,
      std::string("\1\0", 2),  // as the first versions of the protocol began, without keys
      greeting("NULL") + command("\x19", "\5READY\13Socket-Type"),
      greeting("PLAIN") + command("\6", "\5HELLO"),
      greeting("CURVE"),
      greeting("CURVE") + command(std::string(1, '\xc8'), hello),
      greeting("CURVE") + command("\x7f" + std::string(7, '\xff'), "a frame of 2^63 bytes"),
      greeting("CURVE") + command(std::string("\0\0\0\0\xff\0\0\0", 8), std::string(99999, 'x')),
      greeting("CURVE") + command("\5", "\4NONE")};
  for (const auto& saying : sayings) {
    unauthenticated_peers.emplace_back([&] {
      const Socket line = test::called(test::end_of(published()));
      test::say(line, saying);
      test::heard_from(line);
    });
  }
  // Before the ranks have met, and after.
  const auto wait = [](ControlChannel& channel) {
    channel.barrier();
    std::this_thread::sleep_for(300ms);
    channel.barrier();
  };
  EXPECT_EQ(run_each({{place(0, 2), "", 20s, wait}, {place(1, 2), "", 20s, wait, 300ms}}),
            Failures(2));
  for (auto& unknown_peer : unauthenticated_peers) unknown_peer.join();
}

// Nobody is heard any more, and a rank that comes then is told so at once.
TEST_F(LiveRanks, AfterTheRanksHaveMetNobodyListens) {
  std::string second;
  const auto body = [&](ControlChannel& channel) {
    channel.barrier();
    if (channel.rank() == 1) {
      const Socket unknown_peer = bind_socket(kLoopback, 0);
      EXPECT_TRUE(begin_call(unknown_peer, test::end_of(published())));
      pollfd connected{unknown_peer.fd(), POLLOUT, 0};
      EXPECT_EQ(::poll(&connected, 1, 500), 0);
      second = run_each({{place(1, 2)}}).front();
    }
    channel.barrier(ControlChannel::kPatient);
  };
  EXPECT_EQ(run_each({{place(0, 2), "", 20s, body}, {place(1, 2), "", 20s, body}}), Failures(2));
  EXPECT_EQ(second.rfind("rank 1 was started twice; this one ends", 0), 0u) << second;
}

TEST_F(LiveRanks, RanksThatLeaveInOrderHaveNotFailed) {
  const auto body = [](ControlChannel& channel) {
    channel.gather(std::string(3000000, 'x'));
    // Rank 0, in the middle, last: each once.
    std::this_thread::sleep_for(std::chrono::milliseconds(100 * ((channel.rank() + 2) % 4)));
  };
  EXPECT_EQ(run_ranks(4, body), Failures(4));
}

TEST_F(LiveRanks, FailTellsAllOthers) {
  for (const int failing : {0, 1, 2}) {
    const auto body = [&](ControlChannel& channel) {
      channel.barrier();
      if (channel.rank() == failing) {
        channel.fail("the disk is full");
        EXPECT_THROW(channel.barrier(), MachineError);
      } else {
        channel.barrier(ControlChannel::kPatient);
      }
    };
    Failures expected(3, "rank " + std::to_string(failing) + ": the disk is full");
    expected[static_cast<std::size_t>(failing)] = "";
    EXPECT_EQ(run_ranks(3, body), expected);
  }
}

// An exchange breaks off because another rank is gone: that one is named, not the exchange.
TEST_F(LiveRanks, FailNamesTheCause) {
  const auto body = [](ControlChannel& channel) {
    channel.barrier();
    if (channel.rank() == 2) {
      std::this_thread::sleep_for(200ms);
      return;  // leaves; the others were to meet it
    }
    if (channel.rank() == 1) channel.fail("connection reset", 20s);
    channel.barrier();
  };
  const std::string text = "rank 2 ended before the others";
  EXPECT_EQ(run_ranks(3, body), Failures({text, text, ""}));
}

TEST_F(LiveRanks, AFailureIsReportedOncePerRank) {
  std::atomic<int> first_hand = 0;
  std::vector<std::string> told(3);
  std::vector<Rank> ranks;
  for (int r = 0; r < 3; ++r) {
    ranks.push_back({place(r, 3)});
    ranks.back().body = [](ControlChannel& channel) {
      channel.barrier();
      if (channel.rank() == 1) channel.fail("no memory");
      channel.barrier();
    };
    ranks.back().on_failure = [&, r](const std::string& text, bool first) {
      told[static_cast<std::size_t>(r)] += text;
      first_hand += first ? 1 : 0;
    };
  }
  EXPECT_EQ(run_each(ranks), Failures(3, "rank 1: no memory"));
  EXPECT_EQ(told, Failures({"rank 1: no memory", "", "rank 1: no memory"}));
  EXPECT_EQ(first_hand, 1) << "rank 0 alone is to say it";
}

}  // namespace
}  // namespace syncline::live
