// Work spread over ranks that share a folder: rank 0 gives the bytes of one process.
#include "core/run/shards.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "core/error.h"
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

TEST(Shards, ACutShardIsAnError) {
  const Scratch scratch;
  const std::string path = scratch.path("shard-sweep_1-launch-1-of-2");
  run_sharded(4, 1, {1, 2, "launch"}, settings_in(scratch), piece_of_work);
  const std::string whole = test::text_of(path);
  ASSERT_FALSE(whole.empty());
  test::write_text(path, whole.substr(0, whole.size() - 1));
  EXPECT_THROW(run_sharded(4, 1, {0, 2, "launch"}, settings_in(scratch), piece_of_work),
               MachineError);
}

// The variables of a launcher, put in place for a test and taken away again.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& values) {
    for (const char* name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_MCA_orte_precondition_transports",
          "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_ARRAY_TASK_ID",
          "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT",
          "SLURM_ARRAY_JOB_ID"}) {
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
                           {"SLURM_ARRAY_JOB_ID", "1234"}});
  const auto shard = shard_from_environment();
  ASSERT_TRUE(shard.has_value());
  EXPECT_EQ(shard->rank, 3);
  EXPECT_EQ(shard->size, 5);
  EXPECT_EQ(shard->launch, "1234");
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
