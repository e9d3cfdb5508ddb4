// Work spread over processes: the bytes of one process, whatever their number, and no process left
// behind, however it ends.
#include "core/run/jobs.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"

namespace syncline::run {
namespace {

using std::chrono::milliseconds;
using test::Scratch;
using test::text_of;

// Results of uneven length and duration, with every byte value in them.
std::string piece_of_work(std::size_t piece) {
  std::this_thread::sleep_for(milliseconds((piece * 7) % 4));
  std::string text(piece * piece * 97, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i + piece);
  return text;
}

bool no_children() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

// Why the machine fails it; empty where it does not.
template <typename Body>
std::string machine_error(Body body) {
  try {
    body();
  } catch (const MachineError& error) {
    return error.what();
  }
  return "";
}

class Jobs : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Processes, Jobs, testing::Values(1, 2, 3, 8, 40));

TEST_P(Jobs, SameResultsInTheSameOrder) {
  for (const std::size_t count : {0U, 1U, 2U, 23U}) {
    std::vector<std::string> wanted;
    for (std::size_t i = 0; i < count; ++i) wanted.push_back(piece_of_work(i));
    EXPECT_EQ(run_jobs(count, GetParam(), piece_of_work), wanted);
  }
  EXPECT_TRUE(no_children());
}

TEST_P(Jobs, ResultsMayBeLargerThanAPipe) {
  const auto results =
      run_jobs(4, GetParam(), [](std::size_t i) { return std::string(3 << 20, char('a' + i)); });
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[3], std::string(3 << 20, 'd'));
}

TEST_P(Jobs, ProgressCountsEveryPiece) {
  std::vector<std::size_t> seen;
  JobHooks hooks;
  hooks.progress = [&](std::size_t done, std::size_t wanted) {
    seen.push_back(done);
    EXPECT_EQ(wanted, 9U);
  };
  run_jobs(9, GetParam(), piece_of_work, hooks);
  EXPECT_EQ(seen, (std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// Pieces 6 and 11 fail, 6 later than 11 if both run: 6 is told, of its own kind.
TEST_P(Jobs, TheFirstFailureIsReported) {
  const auto work = [](std::size_t piece) -> std::string {
    if (piece == 6) {
      std::this_thread::sleep_for(milliseconds(30));
      throw InputError("six is wrong");
    }
    if (piece == 11) throw MachineError("eleven broke");
    return "";
  };
  EXPECT_EQ(test::input_error([&] { run_jobs(20, GetParam(), work); }), "six is wrong");
  EXPECT_TRUE(no_children());
}

TEST_P(Jobs, OtherExceptionsAreMachineErrors) {
  const auto work = [](std::size_t) -> std::string { throw std::logic_error("oh"); };
  EXPECT_EQ(machine_error([&] { run_jobs(3, GetParam(), work); }), "oh");
}

TEST(JobsOverProcesses, ACrashNamesItsPiece) {
  const auto work = [](std::size_t piece) -> std::string {
    if (piece == 4) ::kill(::getpid(), SIGKILL);
    return "";
  };
  EXPECT_EQ(machine_error([&] { run_jobs(9, 3, work); }),
            "job 5: its process was ended by signal 9 (Killed)");
  const auto leaving = [](std::size_t) -> std::string { ::_exit(7); };
  EXPECT_EQ(machine_error([&] { run_jobs(9, 3, leaving); }),
            "job 1: its process ended without an answer, exit code 7");
  EXPECT_TRUE(no_children());
}

TEST(JobsOverProcesses, OnePieceApartNamesItsFailure) {
  EXPECT_EQ(run_in_process("it", [] { return std::string("done"); }), "done");
  const auto told = [](const std::function<std::string()>& work) {
    return machine_error([&] { run_in_process("it", work); });
  };
  EXPECT_EQ(told([]() -> std::string { throw InputError("wrong"); }), "it: wrong");
  EXPECT_EQ(told([]() -> std::string { ::_exit(7); }),
            "it: its process ended without an answer, exit code 7");
  EXPECT_EQ(told([]() -> std::string {
              ::kill(::getpid(), SIGKILL);
              return "";
            }),
            "it: its process was ended by signal 9 (Killed)");
  EXPECT_TRUE(no_children());
}

TEST(JobsOverProcesses, WorkIsReallyShared) {
  const auto results = run_jobs(12, 3, [](std::size_t) {
    std::this_thread::sleep_for(milliseconds(5));
    return std::to_string(::getpid());
  });
  const std::set<std::string> processes(results.begin(), results.end());
  EXPECT_EQ(processes.size(), 3U);
  EXPECT_FALSE(processes.contains(std::to_string(::getpid())));
}

// Interrupted after some pieces: a beginning without a gap, and it is right.
TEST_P(Jobs, InterruptionGivesTheFirstResults) {
  std::size_t done = 0;
  JobHooks hooks;
  hooks.progress = [&](std::size_t now, std::size_t) { done = now; };
  hooks.interrupted = [&] { return done >= 5; };
  const auto results = run_jobs(200, GetParam(), piece_of_work, hooks);
  EXPECT_GE(results.size(), 5U);
  EXPECT_LT(results.size(), 100U);
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], piece_of_work(i));
  EXPECT_TRUE(no_children());
}

// The last piece ends once the first result has been taken, or says that none was.
TEST_P(Jobs, ResultsAreTakenInOrderWhileOthersAreWorkedOn) {
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const auto work = [&](std::size_t piece) {
    constexpr int kWaitLimit = 60000;  // milliseconds
    pollfd taken{told[0], POLLIN, 0};
    if (piece == 39 && ::poll(&taken, 1, kWaitLimit) != 1) return std::string("none was taken");
    return std::to_string(piece);
  };
  std::vector<std::string> taken;
  JobHooks hooks;
  hooks.take = [&](const std::string& result) {
    if (taken.empty()) {
      EXPECT_EQ(::write(told[1], "t", 1), 1);
    }
    taken.push_back(result);
  };
  EXPECT_TRUE(run_jobs(40, GetParam(), work, hooks).empty());
  ASSERT_EQ(taken.size(), 40U);
  for (std::size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i], std::to_string(i));
  ::close(told[0]);
  ::close(told[1]);
}

// What is done before a failure has been taken; nothing behind it is.
TEST_P(Jobs, ResultsEndAtTheFirstFailure) {
  std::vector<std::string> taken;
  JobHooks hooks;
  hooks.take = [&](const std::string& result) { taken.push_back(result); };
  const auto work = [](std::size_t piece) -> std::string {
    if (piece == 6) throw InputError("six is wrong");
    return std::to_string(piece);
  };
  EXPECT_THROW(run_jobs(20, GetParam(), work, hooks), InputError);
  EXPECT_EQ(taken, (std::vector<std::string>{"0", "1", "2", "3", "4", "5"}));
}

// The processes that have each left a file by their number.
std::vector<pid_t> processes_in(const Scratch& scratch) {
  std::vector<pid_t> list;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.folder())) {
    list.push_back(std::stoi(entry.path().filename().string()));
  }
  return list;
}

volatile std::sig_atomic_t interrupts = 0;

// Ctrl-C reaches the whole process group: the workers finish what they have, nobody is left.
TEST(JobsOverProcesses, InterruptOfTheGroupEndsAllOfIt) {
  const Scratch scratch;
  const pid_t leader = ::fork();
  if (leader == 0) {
    ::setpgid(0, 0);
    std::signal(SIGINT, [](int) { interrupts = 1; });
    JobHooks hooks;
    hooks.interrupted = [] { return interrupts != 0; };
    const auto results = run_jobs(
        1000, 3,
        [&](std::size_t piece) {
          std::ofstream(scratch.path(std::to_string(::getpid())));
          std::this_thread::sleep_for(milliseconds(5));
          return std::to_string(piece);
        },
        hooks);
    bool right = !results.empty() && results.size() < 1000;
    for (std::size_t i = 0; i < results.size(); ++i) right &= results[i] == std::to_string(i);
    ::_exit(right ? 0 : 1);
  }
  ::setpgid(leader, leader);
  while (processes_in(scratch).size() < 3) std::this_thread::sleep_for(milliseconds(1));
  ::kill(-leader, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(leader, &status, 0), leader);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (const pid_t worker : processes_in(scratch)) EXPECT_NE(::kill(worker, 0), 0) << worker;
}

// A leader that is killed takes its workers with it.
TEST(JobsOverProcesses, NoOrphansAfterAKill) {
  const Scratch scratch;
  const pid_t leader = ::fork();
  if (leader == 0) {
    run_jobs(2, 2, [&](std::size_t) -> std::string {
      std::ofstream(scratch.path(std::to_string(::getpid())));
      std::this_thread::sleep_for(std::chrono::seconds(100));
      return "";
    });
    ::_exit(0);
  }
  while (processes_in(scratch).size() < 2) std::this_thread::sleep_for(milliseconds(2));
  const std::vector<pid_t> workers = processes_in(scratch);
  ::kill(leader, SIGKILL);
  ASSERT_EQ(::waitpid(leader, nullptr, 0), leader);
  // Whoever inherits them may take a moment to collect them: a zombie has ended too.
  const auto ended = [](pid_t process) {
    const std::string stat = text_of("/proc/" + std::to_string(process) + "/stat");
    return stat.empty() || stat.find(") Z ") != std::string::npos;
  };
  for (const pid_t worker : workers) {
    for (int i = 0; i < 1000 && !ended(worker); ++i) std::this_thread::sleep_for(milliseconds(5));
    EXPECT_TRUE(ended(worker));
  }
}

}  // namespace
}  // namespace syncline::run
