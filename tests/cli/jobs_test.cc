// `syncline run` by several processes and by the ranks of a launcher: the bytes of one process.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/program.h"

namespace syncline::cli {
namespace {

using test::Ran;
using test::Scratch;
using test::shell;
using test::text_of;

const std::string kScenarios = SYNCLINE_SOURCE_DIR "/scenarios/";

std::string program(const std::string& arguments) { return "'" SYNCLINE_BINARY "' " + arguments; }

TEST(CliJobs, TheSameBytesFromAnyNumberOfProcesses) {
  for (const std::string& arguments :
       {"run " + kScenarios + "overlap_streams.json --executor sim --format json",
        "run " + kScenarios + "frameworks.json --format csv",
        "tune " + kScenarios + "tune_resnet50.json --exhaustive --format json",
        "tune " + kScenarios + "tune_resnet50.json --executor sim --budget 5 --format json"}) {
    const Ran one = shell(program(arguments));
    ASSERT_EQ(one.code, 0) << arguments;
    for (const std::string jobs : {"2", "7"}) {
      const Ran more = shell(program(arguments + " --jobs " + jobs));
      EXPECT_EQ(more.code, 0);
      EXPECT_EQ(more.out, one.out) << arguments << " --jobs " << jobs;
    }
  }
}

TEST(CliJobs, TracesAndFilesAreTheSame) {
  const Scratch scratch;
  const std::string run = "run " + kScenarios + "overlap_streams.json --out " + scratch.folder();
  ASSERT_EQ(shell(program(run + "/one")).code, 0);
  ASSERT_EQ(shell(program(run + "/three --jobs 3")).code, 0);
  for (const std::string file :
       {"report.txt", "report.md", "rows.csv", "report.json", "trace.json"}) {
    const std::string text = text_of(scratch.path("one/" + file));
    EXPECT_FALSE(text.empty()) << file;
    EXPECT_EQ(text_of(scratch.path("three/" + file)), text) << file;
  }
}

// Ranks started by hand, as mpirun and Slurm would tell them their places; rank 0 first or last.
TEST(CliJobs, RanksShareASweep) {
  const Scratch scratch;
  const std::string arguments = "run " + kScenarios + "overlap_streams.json --format json";
  const Ran one = shell(program(arguments));
  const std::string sharded =
      program(arguments + " --shards " + scratch.path("shards")) + " > " + scratch.folder();
  const std::vector<std::string> launchers{
      "OMPI_COMM_WORLD_SIZE=3 PMIX_NAMESPACE=x OMPI_COMM_WORLD_RANK=",
      "SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_JOB_ID=8 SLURM_ARRAY_TASK_ID="};
  for (const auto& launcher : launchers) {
    std::string command;
    for (const std::string rank : {"1", "0", "2"}) {
      command += launcher + rank + " " + sharded + "/" + rank + " & ";
    }
    EXPECT_EQ(shell(command + "wait").code, 0);
    EXPECT_EQ(text_of(scratch.path("0")), one.out);
    EXPECT_EQ(text_of(scratch.path("1")) + text_of(scratch.path("2")), "");
    EXPECT_EQ(shell("ls " + scratch.path("shards")).out, "") << "shards are left lying about";
  }
}

TEST(CliJobs, UnderMpirun) {
  if (shell("command -v mpirun").code != 0) GTEST_SKIP() << "mpirun (openmpi-bin) is not installed";
  const Scratch scratch;
  const std::string arguments =
      "run " + kScenarios + "overlap_streams.json --executor sim --format csv";
  const Ran one = shell(program(arguments));
  const Ran two = shell("mpirun --allow-run-as-root --oversubscribe -n 2 " +
                        program(arguments + " --jobs 2 --shards " + scratch.folder()));
  EXPECT_EQ(two.code, 0);
  EXPECT_EQ(two.out, one.out);
  EXPECT_TRUE(scratch.empty());
}

TEST(CliJobs, ShardsWithoutALauncherAreAMistake) {
  const Scratch scratch;
  const Ran ran = shell(
      "env -u OMPI_COMM_WORLD_RANK -u SLURM_ARRAY_TASK_ID " +
      program("run " + kScenarios + "first.json --shards " + scratch.path("shards")) + " 2>&1");
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.out.find("--shards"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("OMPI_COMM_WORLD_RANK"), std::string::npos) << ran.out;
  EXPECT_TRUE(scratch.empty());
}

TEST(CliJobs, NoJobsIsAMistake) {
  EXPECT_EQ(shell(program("run " + kScenarios + "first.json --jobs 0 2>/dev/null")).code, 2);
}

}  // namespace
}  // namespace syncline::cli
