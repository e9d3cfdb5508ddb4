// Work spread over ranks that share a folder: rank 0 gives the bytes of one process.
#include "core/run/shards.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <thread>

#include "core/error.h"
#include "tests/support/dice.h"
#include "tests/support/scratch.h"

namespace syncline::run {
namespace {

using test::Scratch;

std::string piece_of_work(std::size_t piece) {
  return std::string(piece * 11, static_cast<char>(piece)) + std::to_string(piece);
}

ShardSettings settings_in(const Scratch& scratch) {
  ShardSettings settings;
  settings.folder = scratch.folder();
  settings.work_name = "sweep 1";
  settings.patience = std::chrono::seconds(60);
  settings.restart_patience = std::chrono::milliseconds(200);
  return settings;
}

// The ranks above 0, each a process; they exit with 0 if they gave nothing, as they should.
std::vector<pid_t> other_ranks(int size, std::size_t count, const Scratch& scratch,
                               const std::function<std::string(std::size_t)>& work) {
  std::vector<pid_t> ranks;
  for (int rank = 1; rank < size; ++rank) {
    ranks.push_back(::fork());
    if (ranks.back() != 0) continue;
    int code = 1;
    try {
      code =
          run_sharded(count, 2, {rank, size, "launch"}, settings_in(scratch), work).empty() ? 0 : 1;
    } catch (const std::exception&) {
      code = 2;
    }
    ::_exit(code);
  }
  return ranks;
}

int exit_of(pid_t process) {
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Shards, SameBytesAsOneProcess) {
  for (const int size : {1, 2, 3, 5}) {
    for (const std::size_t count : {0U, 1U, 2U, 13U}) {
      const Scratch scratch;
      const auto others = other_ranks(size, count, scratch, piece_of_work);
      const auto results =
          run_sharded(count, 1, {0, size, "launch"}, settings_in(scratch), piece_of_work);
      EXPECT_EQ(results, run_jobs(count, 1, piece_of_work)) << size << " " << count;
      for (const pid_t rank : others) EXPECT_EQ(exit_of(rank), 0);
      // Rank 0 is killed before it has printed, and started again: the others are gone.
      EXPECT_EQ(run_sharded(count, 1, {0, size, "launch"}, settings_in(scratch), piece_of_work),
                results);
      remove_shards({0, size, "launch"}, settings_in(scratch));
      EXPECT_TRUE(scratch.empty());
    }
  }
}

TEST(Shards, AFailureIsToldOnItsRankAndOnRankZero) {
  const Scratch scratch;
  const auto work = [](std::size_t piece) -> std::string {
    if (piece == 7) throw InputError("seven is wrong");
    return "";
  };
  const auto others = other_ranks(3, 12, scratch, work);  // 7 is rank 1's
  try {
    run_sharded(12, 1, {0, 3, "launch"}, settings_in(scratch), work);
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "seven is wrong");
  }
  EXPECT_EQ(exit_of(others[0]), 2);
  EXPECT_EQ(exit_of(others[1]), 0);
  EXPECT_TRUE(scratch.empty());
}

TEST(Shards, AMissingRankIsAnErrorInTime) {
  const Scratch scratch;
  ShardSettings settings = settings_in(scratch);
  settings.patience = std::chrono::seconds(0);
  try {
    run_sharded(4, 1, {0, 2, "launch"}, settings, piece_of_work);
    ADD_FAILURE();
  } catch (const MachineError& error) {
    EXPECT_NE(std::string(error.what()).find("1-of-2"), std::string::npos) << error.what();
  }
}

// A rank that was interrupted leaves what it had: rank 0 gives what is there without a gap.
TEST(Shards, InterruptionGivesTheFirstResults) {
  const Scratch scratch;
  std::size_t done = 0;
  JobHooks hooks;
  hooks.progress = [&](std::size_t now, std::size_t) { done = now; };
  hooks.interrupted = [&] { return done >= 2; };
  EXPECT_TRUE(
      run_sharded(20, 1, {1, 2, "launch"}, settings_in(scratch), piece_of_work, hooks).empty());
  const auto results = run_sharded(20, 1, {0, 2, "launch"}, settings_in(scratch), piece_of_work);
  EXPECT_EQ(results, run_jobs(5, 1, piece_of_work));  // 1 and 3 came, 5 is missing
}

TEST(Shards, LaunchesDoNotMeet) {
  const Scratch scratch;
  run_sharded(4, 1, {1, 2, "an older launch"}, settings_in(scratch), piece_of_work);
  ShardSettings settings = settings_in(scratch);
  settings.patience = std::chrono::seconds(0);
  EXPECT_THROW(run_sharded(4, 1, {0, 2, "launch"}, settings, piece_of_work), MachineError);
}

std::string shard_of_one(const Scratch& scratch) {
  return scratch.path("shard-sweep_1-launch-1-of-2");
}

// What rank 0 of two ends with; what it says goes to `said`.
std::string failure_of_zero(const ShardSettings& settings, int attempt = 0) {
  try {
    run_sharded(4, 1, {0, 2, "launch", attempt}, settings, piece_of_work);
    return "";
  } catch (const MachineError& error) {
    return error.what();
  }
}

TEST(Shards, WhatIsNoShardIsNamed) {
  const Scratch scratch;
  run_sharded(4, 1, {1, 2, "launch"}, settings_in(scratch), piece_of_work);
  const std::string path = shard_of_one(scratch);
  const std::string whole = test::text_of(path);
  ASSERT_FALSE(whole.empty());
  std::string unknown_end = whole;
  unknown_end[whole.find('D', whole.find('\n'))] = 'X';
  std::string long_text = whole;
  long_text[whole.find('\n') + 2] = '\xff';
  std::vector<std::string> texts{"", "D", "my notes\n", unknown_end, long_text};
  for (std::size_t cut = 1; cut < whole.size(); cut += 3) texts.push_back(whole.substr(0, cut));
  for (const auto& text : texts) {
    test::write_text(path, text);
    const std::string failure = failure_of_zero(settings_in(scratch));
    EXPECT_EQ(failure.rfind(path, 0), 0U) << failure;
  }
}

TEST(Shards, APipeOfThatNameIsNotWaitedFor) {
  const Scratch scratch;
  ASSERT_EQ(::mkfifo(shard_of_one(scratch).c_str(), 0600), 0);
  const std::string failure = failure_of_zero(settings_in(scratch));
  EXPECT_NE(failure.find("is no ordinary file"), std::string::npos) << failure;
}

// A failure and an interruption that were there before rank 0 began: their rank is given the time
// to come again, and does or does not.
TEST(Shards, WhatAnEarlierTryLeftIsNotTheEnd) {
  const auto fail = [](std::size_t) -> std::string { throw MachineError("no memory"); };
  JobHooks stop;
  stop.interrupted = [] { return true; };
  for (const bool failed : {true, false}) {
    const Scratch scratch;
    std::vector<std::string> said;
    ShardSettings settings = settings_in(scratch);
    settings.say = [&](const std::string& text) { said.push_back(text); };
    const auto leave = [&] {
      try {
        run_sharded(4, 1, {1, 2, "launch"}, settings, failed ? fail : piece_of_work,
                    failed ? JobHooks{} : stop);
      } catch (const MachineError&) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // what a folder's clock can tell
    };
    leave();
    const std::string failure = failure_of_zero(settings);
    EXPECT_EQ(failure, failed ? "no memory" : "");
    ASSERT_FALSE(said.empty());
    EXPECT_NE(said.front().find("rank 1 left that it " +
                                std::string(failed ? "failed (no memory)" : "was interrupted")),
              std::string::npos)
        << said.front();

    leave();
    settings.restart_patience = std::chrono::seconds(60);
    std::thread again([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      run_sharded(4, 1, {1, 2, "launch"}, settings_in(scratch), piece_of_work);
    });
    EXPECT_EQ(run_sharded(4, 1, {0, 2, "launch"}, settings, piece_of_work),
              run_jobs(4, 1, piece_of_work));
    again.join();
    // Where the scheduler counts the tries, the earlier one's is never the end.
    leave();
    settings.patience = std::chrono::milliseconds(300);
    settings.restart_patience = std::chrono::milliseconds(0);
    EXPECT_NE(failure_of_zero(settings, 1).find("have not come in time"), std::string::npos);
  }
}

// Killed at any moment and started again, rank 0 gives the answer: the others left theirs once.
TEST(Shards, RankZeroMayDieAtAnyMoment) {
  const Scratch scratch;
  for (int rank = 1; rank < 6; ++rank) {
    run_sharded(60, 1, {rank, 6, "launch"}, settings_in(scratch), piece_of_work);
  }
  test::Dice dice(3);
  for (int i = 0; i < 20; ++i) {
    const pid_t zero = ::fork();
    if (zero == 0) {
      run_sharded(60, 1, {0, 6, "launch"}, settings_in(scratch), piece_of_work);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(dice.between(0, 5000)));
    ::kill(zero, SIGKILL);
    ::waitpid(zero, nullptr, 0);
  }
  EXPECT_EQ(run_sharded(60, 1, {0, 6, "launch"}, settings_in(scratch), piece_of_work),
            run_jobs(60, 1, piece_of_work));
}

// The variables of a launcher, put in place for a test and taken away again.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& values) {
    for (const char* name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_MCA_orte_precondition_transports",
          "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_ARRAY_TASK_ID",
          "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT",
          "SLURM_ARRAY_JOB_ID", "SLURM_RESTART_COUNT"}) {
      const char* old = std::getenv(name);
      before_.emplace_back(name, old == nullptr ? std::optional<std::string>() : old);
      ::unsetenv(name);
    }
    for (const auto& [name, value] : values) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : before_) {
      ::unsetenv(name.c_str());
      if (value) ::setenv(name.c_str(), value->c_str(), 1);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

TEST(ShardFromEnvironment, ReadsLaunchers) {
  {
    const Environment none({});
    EXPECT_FALSE(shard_from_environment().has_value());
  }
  {
    const Environment mpi({{"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_MCA_ess_base_jobid", "77"}});
    const auto shard = shard_from_environment();
    ASSERT_TRUE(shard.has_value());
    EXPECT_EQ(shard->rank, 2);
    EXPECT_EQ(shard->size, 4);
    EXPECT_EQ(shard->launch, "77");
  }
  const Environment slurm({{"SLURM_ARRAY_TASK_ID", "7"},
                           {"SLURM_ARRAY_TASK_MIN", "1"},
                           {"SLURM_ARRAY_TASK_STEP", "2"},
                           {"SLURM_ARRAY_TASK_COUNT", "5"},
                           {"SLURM_ARRAY_JOB_ID", "1234"},
                           {"SLURM_RESTART_COUNT", "2"}});
  const auto shard = shard_from_environment();
  ASSERT_TRUE(shard.has_value());
  EXPECT_EQ(shard->rank, 3);
  EXPECT_EQ(shard->size, 5);
  EXPECT_EQ(shard->launch, "1234");
  EXPECT_EQ(shard->attempt, 2);
}

TEST(ShardFromEnvironment, RefusesNonsense) {
  for (const auto& [rank, size] : std::vector<std::pair<std::string, std::string>>{
           {"x", "2"}, {"-1", "2"}, {"2", "2"}, {"0", "0"}, {"0", ""}, {"1e0", "2"}}) {
    const Environment mpi({{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", size}});
    EXPECT_THROW(shard_from_environment(), InputError) << rank << " of " << size;
  }
}

}  // namespace
}  // namespace syncline::run
