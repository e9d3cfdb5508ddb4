// `syncline run` by several processes, and in parts by a launcher: the bytes of one process.

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <sstream>
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

// Lines in order, each once.
std::string sorted_lines(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream rest(text);
  for (std::string line; std::getline(rest, line);) lines.insert(line + "\n");
  return std::accumulate(lines.begin(), lines.end(), std::string());
}

const std::string kSwept = "run " + kScenarios + "overlap_streams.json --format csv";

TEST(CliParts, TogetherAreTheWhole) {
  const std::string whole = sorted_lines(shell(program(kSwept)).out);
  for (const int count : {1, 2, 3, 50}) {
    std::string parts;
    for (int part = 1; part <= count; ++part) {
      const Ran ran = shell(program(kSwept + " --part " + std::to_string(part) + "/" +
                                    std::to_string(count) + (part % 2 == 0 ? " --jobs 2" : "")));
      ASSERT_EQ(ran.code, 0) << ran.err;
      if (count > 1) {
        EXPECT_LT(sorted_lines(ran.out).size(), whole.size());
      }
      parts += ran.out;
    }
    EXPECT_EQ(sorted_lines(parts), whole) << count;
  }
}

TEST(CliParts, AreNumberedByOpenMpiAndSlurm) {
  const std::string second = shell(program(kSwept + " --part 2/3")).out;
  EXPECT_FALSE(second.empty());
  for (const std::string launcher :
       {"OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=1 ",
        "SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_ID=6 "}) {
    EXPECT_EQ(shell(launcher + program(kSwept + " --part auto")).out, second) << launcher;
  }
}

TEST(CliParts, UnderMpirun) {
  if (shell("command -v mpirun").code != 0) GTEST_SKIP() << "mpirun (openmpi-bin) is not installed";
  const Ran ran =
      shell("mpirun --allow-run-as-root --oversubscribe -n 2 " + program(kSwept + " --part auto"));
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(sorted_lines(ran.out), sorted_lines(shell(program(kSwept)).out));
}

TEST(CliParts, MistakesAreSaid) {
  const std::string alone = "env -u OMPI_COMM_WORLD_RANK -u SLURM_ARRAY_TASK_ID ";
  for (const auto& [words, said] : std::vector<std::pair<std::string, std::string>>{
           {"--part 0/3", "'0/3', expected I/N"},
           {"--part 4/3", "'4/3', expected I/N"},
           {"--part 1", "'1', expected I/N"},
           {"--part 1/x", "'1/x', expected I/N"},
           {"--part auto", "OMPI_COMM_WORLD_RANK"},
           {"--part 1/3 --html page.html", "--format csv"},
           {"--part 1/3 --trace t.json", "remove --out"}}) {
    const Ran ran = shell(alone + program(kSwept + " " + words) + " 2>&1");
    EXPECT_EQ(ran.code, 2) << words;
    EXPECT_NE(ran.out.find(said), std::string::npos) << words << ": " << ran.out;
  }
}

TEST(CliJobs, NoJobsIsAMistake) {
  EXPECT_EQ(shell(program("run " + kScenarios + "first.json --jobs 0 2>/dev/null")).code, 2);
}

}  // namespace
}  // namespace syncline::cli
