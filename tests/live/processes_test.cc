// Ranks as processes: how they are started, who ends whom, and that nobody is left behind.
#include "live/processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "tests/support/patience.h"
#include "tests/support/scratch.h"

namespace syncline::live {
namespace {

using test::comes_true;
using test::Scratch;
using test::text_of;

RankCommand shell(const std::string& script) {
  RankCommand rank;
  rank.words = {"sh", "-c", script};
  rank.out = -1;
  rank.err = -1;
  return rank;
}

ProcessRules quick() {
  ProcessRules rules;
  rules.wait_limit = 0.05;
  rules.grace = 0.2;
  return rules;
}

// A zombie is gone: whoever inherited it has merely not looked yet.
bool running(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/stat");
  std::string text;
  if (!std::getline(in, text)) return false;
  return text.substr(text.rfind(')') + 2, 1) != "Z";
}

std::string line_of(const std::string& path) {
  std::string text;
  comes_true([&] {
    text = text_of(path);
    return !text.empty() && text.back() == '\n';
  });
  if (!text.empty()) text.pop_back();
  return text;
}

TEST(Processes, EachHasItsEnvironmentAndLeadsItsGroup) {
  const Scratch scratch;
  std::vector<RankCommand> ranks;
  for (int r = 0; r < 3; ++r) {
    ranks.push_back(
        shell("echo $RANK $$ $(ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 "
              "/proc/$$/stat) $(wc -c) > " +
              scratch.path(std::to_string(r))));
    ranks.back().environment["RANK"] = std::to_string(r);
  }
  const JobEnd end = run_ranks(ranks, quick());
  EXPECT_EQ(exit_code(end), 0);
  EXPECT_EQ(in_words(end), "");
  for (int r = 0; r < 3; ++r) {
    std::ifstream in(scratch.path(std::to_string(r)));
    int rank = -1;
    int pid = 0;
    int group = 0;
    int input = -1;
    in >> rank >> pid >> group >> input;
    EXPECT_EQ(rank, r);
    EXPECT_EQ(group, pid);
    EXPECT_NE(group, ::getpgrp());
    EXPECT_EQ(input, 0);
  }
}

TEST(Processes, TheFirstToFailIsNamedAndTheOthersAreEnded) {
  const JobEnd end = run_ranks({shell("sleep 100"), shell("exit 7"), shell("sleep 100")}, quick());
  ASSERT_EQ(end.first_failed, 1u);
  EXPECT_EQ(end.ranks[1].code, 7);
  EXPECT_FALSE(end.ranks[1].by_us);
  EXPECT_EQ(end.ranks[0].signal, SIGTERM);
  EXPECT_TRUE(end.ranks[0].by_us);
  EXPECT_EQ(exit_code(end), 7);
  EXPECT_NE(in_words(end).find("rank 1 ended with exit code 7"), std::string::npos);
  EXPECT_NE(in_words(end).find("ended by us: 0, 2"), std::string::npos) << in_words(end);
}

TEST(Processes, RankZerosOwnCodeCountsMost) {
  // Rank 1 fails first; rank 0 sees that and says so in its own way, in the time that it is given.
  const Scratch scratch;
  const std::string failed = scratch.path("failed");
  ProcessRules rules;
  rules.wait_limit = 20;
  const JobEnd end = run_ranks({shell("while [ ! -e " + failed +
                                      " ]; do sleep 0.01; done; "
                                      "sleep 0.1; exit 3"),
                                shell("touch " + failed + "; kill -9 $$")},
                               rules);
  EXPECT_EQ(end.first_failed, 1u);
  EXPECT_EQ(end.ranks[1].signal, SIGKILL);
  EXPECT_EQ(end.ranks[1].code, 137);
  EXPECT_EQ(end.ranks[0].code, 3);
  EXPECT_FALSE(end.ranks[0].by_us);
  EXPECT_EQ(exit_code(end), 3);
  EXPECT_NE(in_words(end).find("rank 1 was killed by signal 9"), std::string::npos);
  EXPECT_NE(in_words(end).find("then rank 0 ended with exit code 3"), std::string::npos);
}

// The launcher itself was not killed.
TEST(Processes, ARankThatIsKilledIsAFailingMachine) {
  for (const char* killed : {"0", "1"}) {
    JobEnd end = run_ranks({shell(std::string("[ 0 = ") + killed + " ] && kill -9 $$; exit 0"),
                            shell(std::string("[ 1 = ") + killed + " ] && kill -9 $$; exit 0")},
                           quick());
    EXPECT_EQ(exit_code(end), 3) << killed;
  }
}

TEST(Processes, WhoDoesNotHeedSigtermIsKilled) {
  const Scratch scratch;
  const std::string deaf = scratch.path("deaf");
  const JobEnd end =
      run_ranks({shell("trap '' TERM; touch " + deaf + "; while :; do sleep 0.05; done"),
                 shell("while [ ! -e " + deaf + " ]; do sleep 0.01; done; exit 1")},
                quick());
  EXPECT_EQ(end.ranks[0].signal, SIGKILL);
  EXPECT_TRUE(end.ranks[0].by_us);
  EXPECT_EQ(exit_code(end), 1);
}

TEST(Processes, AnInterruptReachesEveryRank) {
  const Scratch scratch;
  const std::string script = "trap 'echo interrupted > " + scratch.folder() +
                             "/$RANK; exit 5' INT; touch " + scratch.folder() +
                             "/ready$RANK; while :; do sleep 0.02; done";
  std::vector<RankCommand> ranks{shell(script), shell(script)};
  ranks[0].environment["RANK"] = "0";
  ranks[1].environment["RANK"] = "1";
  ProcessRules rules;
  rules.grace = 20;
  rules.acts.push_back({0, [&] {
                          comes_true([&] {
                            return std::filesystem::exists(scratch.path("ready0")) &&
                                   std::filesystem::exists(scratch.path("ready1"));
                          });
                          ::kill(::getpid(), SIGINT);
                        }});
  const JobEnd end = run_ranks(ranks, rules);
  EXPECT_EQ(end.interrupted, SIGINT);
  EXPECT_EQ(exit_code(end), 130);
  EXPECT_EQ(text_of(scratch.path("0")), "interrupted\n");
  EXPECT_EQ(text_of(scratch.path("1")), "interrupted\n");
  EXPECT_FALSE(end.first_failed);  // they were told to end
}

TEST(Processes, ASecondInterruptWaitsNoLonger) {
  const Scratch scratch;
  const std::string deaf = scratch.path("deaf");
  ProcessRules rules;
  rules.grace = 1000;
  for (const double at : {0.0, 0.1}) {
    rules.acts.push_back({at, [&] {
                            comes_true([&] { return std::filesystem::exists(deaf); });
                            ::kill(::getpid(), SIGINT);
                          }});
  }
  const JobEnd end =
      run_ranks({shell("trap '' INT; touch " + deaf + "; while :; do sleep 0.05; done")}, rules);
  EXPECT_EQ(end.ranks[0].signal, SIGKILL);
  EXPECT_EQ(exit_code(end), 130);
}

TEST(Processes, AFailedStartLeavesNoProcessRunning) {
  const Scratch scratch;
  RankCommand nothing;
  nothing.words = {"no-such-program-of-syncline"};
  try {
    run_ranks({shell("echo $$ > " + scratch.path("pid") + "; exec sleep 100"), nothing}, quick());
    FAIL() << "started";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "'no-such-program-of-syncline' cannot be run: No such file or directory");
  }
  // The first may have been killed before it came to write, or with the file just made.
  if (std::filesystem::exists(scratch.path("pid"))) {
    const std::string pid = text_of(scratch.path("pid"));
    EXPECT_FALSE(!pid.empty() && running(pid.substr(0, pid.find('\n'))));
  }
  RankCommand refusing = shell("true");
  refusing.before_exec = [] { throw std::runtime_error("no network today"); };
  EXPECT_THROW(run_ranks({refusing}, quick()), MachineError);
}

TEST(Processes, AnActThatFailsEndsTheRanks) {
  ProcessRules rules = quick();
  rules.acts.push_back({0.05, [] { throw MachineError("the cable is stuck"); }});
  EXPECT_THROW(run_ranks({shell("sleep 100")}, rules), MachineError);
}

TEST(Processes, ChildrenOfARankEndWithIt) {
  const Scratch scratch;
  const JobEnd end = run_ranks({shell("sleep 1000 & echo $! > " + scratch.path("pid"))}, quick());
  EXPECT_EQ(exit_code(end), 0);
  EXPECT_TRUE(comes_true([&] { return !running(line_of(scratch.path("pid"))); }));
}

TEST(Processes, NoRankOutlivesUs) {
  const Scratch scratch;
  const pid_t us = ::fork();
  if (us == 0) {
    run_ranks({shell("echo $$ > " + scratch.path("pid") + "; exec sleep 1000")}, quick());
    ::_exit(0);
  }
  const std::string pid = line_of(scratch.path("pid"));
  ASSERT_TRUE(running(pid));
  ::kill(us, SIGKILL);
  ::waitpid(us, nullptr, 0);
  EXPECT_TRUE(comes_true([&] { return !running(pid); }));
}

TEST(Processes, SignalsAreOursAgainAfterwards) {
  sigset_t before;
  sigset_t after;
  ::sigprocmask(SIG_BLOCK, nullptr, &before);
  run_ranks({shell("true")}, quick());
  ::sigprocmask(SIG_BLOCK, nullptr, &after);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    EXPECT_EQ(::sigismember(&before, signal), ::sigismember(&after, signal)) << signal;
  }
}

// Nobody is left to say that the others are silent.
TEST(Processes, RanksThatAreAllStoppedAreEnded) {
  ProcessRules rules = quick();
  rules.stopped = 0.3;
  const JobEnd end =
      run_ranks({shell("kill -STOP $$"), shell("exit 0"), shell("kill -STOP $$")}, rules);
  EXPECT_TRUE(end.stopped);
  EXPECT_EQ(exit_code(end), 3);
  EXPECT_EQ(in_words(end), "all ranks were stopped (SIGSTOP) and did not go on; ended by us");
}

// No other rank has been started yet.
TEST(Processes, ARankThatIsStoppedBeforeItsProgramIsEnded) {
  RankCommand stopped = shell("exit 0");
  stopped.before_exec = [] { ::raise(SIGSTOP); };
  ProcessRules rules = quick();
  const auto message = [&] {
    try {
      run_ranks({shell("sleep 100"), stopped}, rules);
    } catch (const MachineError& error) {
      return std::string(error.what());
    }
    return std::string("started");
  };
  rules.stopped = 0.3;
  EXPECT_EQ(message(), "rank 1 was stopped (SIGSTOP) before its program began, and did not go on");
  // Ctrl-C does not wait for it.
  rules.stopped = ProcessRules().stopped;
  const pid_t asks = ::fork();
  if (asks == 0) {
    ::usleep(300'000);
    ::kill(::getppid(), SIGINT);
    ::_exit(0);
  }
  EXPECT_EQ(message(), "rank 1 was stopped (SIGSTOP) before its program began, and did not go on");
  ::waitpid(asks, nullptr, 0);
}

// Ctrl-C while a rank is slow to start is not forgotten.
TEST(Processes, ASignalDuringASlowStartEndsTheRanks) {
  RankCommand slow = shell("sleep 100");
  slow.before_exec = [] {
    ::kill(::getppid(), SIGTERM);
    ::usleep(400'000);
  };
  const JobEnd end = run_ranks({slow}, quick());
  EXPECT_EQ(end.interrupted, SIGTERM);
  EXPECT_EQ(exit_code(end), 128 + SIGTERM);
}

TEST(Processes, AStoppedRankIsTheOthersAffair) {
  ProcessRules rules = quick();
  rules.stopped = 0.1;
  // One goes on while the other is stopped, and sets it going again.
  const Scratch scratch;
  const std::string pid = scratch.path("pid");
  const JobEnd end = run_ranks(
      {shell("echo $$ > " + pid + ".new; mv " + pid + ".new " + pid + "; kill -STOP $$; exit 0"),
       shell("while [ ! -e " + pid + " ]; do sleep 0.01; done; sleep 0.4; kill -CONT $(cat " + pid +
             ")")},
      rules);
  EXPECT_FALSE(end.stopped);
  EXPECT_EQ(exit_code(end), 0);
}

}  // namespace
}  // namespace syncline::live
