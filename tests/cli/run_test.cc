// `syncline run` by several processes, and in parts by a launcher: the bytes of one process.
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "formats/json/json.h"
#include "tests/support/expect.h"
#include "tests/support/program.h"
#include "tests/support/scratch.h"

namespace syncline::cli {
namespace {

using test::kScenarios;
using test::Ran;
using test::Scratch;
using test::shell;
using test::text_of;

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

TEST(CliParts, MistakesAreReported) {
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
    EXPECT_TRUE(test::says(ran.out, said)) << words;
  }
}

TEST(CliJobs, NoJobsIsAMistake) {
  EXPECT_EQ(shell(program("run " + kScenarios + "first.json --jobs 0 2>/dev/null")).code, 2);
}

// run --trace-of: any strategy, sweep point and rank in the trace.

const Json kTracedScenario = Json::parse(R"({
  "name": "traced", "workload": {"name": "w", "batch": 1, "forward_ms": 1, "tensors": [
    {"name": "a", "shape": [1000000], "backward_us": 900},
    {"name": "b", "shape": [2000000], "backward_us": 400}]},
  "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 2, "intra": {"latency_us": 2,
    "bandwidth_gbps": 100}, "inter": {"latency_us": 5, "bandwidth_gbps": 10}},
  "strategies": [{"name": "one by one"}, {"name": "at once", "fusion": {"rule": "one"}}],
  "sweep": {"cluster.nodes": [2, 4], "cluster.inter.bandwidth_gbps": [10, 25]}})");

class TraceOf : public testing::Test {
 protected:
  test::Ran run(const Json& scenario, const std::vector<std::string>& words) {
    test::write_text(scratch_.path("s.json"), scenario.dump());
    return test::syncline_run(test::joined({"run", scratch_.path("s.json")}, words));
  }

  Json trace_of(const Json& scenario, const std::vector<std::string>& words) {
    const std::string file = scratch_.path("t.json");
    const test::Ran ran = run(scenario, test::joined(words, {"--trace", file}));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return Json::parse(test::text_of(file));
  }

  test::Scratch scratch_;
};

std::set<std::string> processes(const Json& trace) {
  std::set<std::string> names;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("name") == "process_name") names.insert(event["args"]["name"].get<std::string>());
  }
  return names;
}

// The same scenario without the sweep, and with no other strategy or rank to choose, is the trace
// that is wanted.
TEST_F(TraceOf, APointOfTheSweepIsThatOfAScenarioWithoutOne) {
  for (const char* executor : {"model", "sim"}) {
    Json fixed = kTracedScenario;
    fixed.erase("sweep");
    fixed["cluster"]["nodes"] = 4;
    fixed["cluster"]["inter"]["bandwidth_gbps"] = 25;
    const Json wanted = trace_of(fixed, {"--executor", executor, "--trace-of",
                                         "strategy=one by one", "--trace-of", "strategy=at once"});
    const Json chosen =
        trace_of(kTracedScenario, {"--executor", executor, "--trace-of", "nodes=4", "--trace-of",
                                   "cluster.inter.bandwidth_gbps=25"});
    EXPECT_EQ(chosen, wanted) << executor;
    EXPECT_NE(trace_of(kTracedScenario, {"--executor", executor}), wanted) << executor;
    EXPECT_NE(trace_of(kTracedScenario, {"--executor", executor, "--trace-of", "nodes=4"}), wanted);
  }
}

TEST_F(TraceOf, WithoutAChoiceItIsAStepOfTheBest) {
  const Json trace = trace_of(kTracedScenario, {});
  EXPECT_EQ(processes(trace), (std::set<std::string>{"one by one / rank 0"}));
  std::set<std::string> steps;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.value("cat", "") == "user_annotation") steps.insert(event.at("name"));
  }
  EXPECT_EQ(steps, (std::set<std::string>{"ProfilerStep#0"}));
}

TEST_F(TraceOf, StrategiesAndRanksByName) {
  const Json trace = trace_of(kTracedScenario, {"--trace-of", "strategy=at once", "--trace-of",
                                                "rank=3", "--trace-of=rank=1"});
  EXPECT_EQ(processes(trace), (std::set<std::string>{"at once / rank 1", "at once / rank 3"}));
  EXPECT_EQ(trace["distributedInfo"]["rank"], 1);
}

// Where ranks differ it is that rank's own timeline: none of the first four is another one's.
TEST_F(TraceOf, ARankThatIsNotAmongTheFirstIsSimulatedItself) {
  Json scenario = kTracedScenario;
  scenario["cluster"]["jitter"] = {{"relative", 0.2}};
  scenario["simulation"] = {{"periods", 4}};
  std::set<std::string> forwards;
  for (const char* rank : {"rank=0", "rank=3", "rank=7"}) {
    const Json trace = trace_of(scenario, {"--executor", "sim", "--trace-of", "nodes=4",
                                           "--trace-of", "strategy=at once", "--trace-of", rank});
    std::string times;
    for (const auto& event : trace["traceEvents"]) {
      if (event["name"] == "forward") times += event["dur"].dump() + " ";
    }
    EXPECT_NE(times, "");
    EXPECT_TRUE(forwards.insert(times).second) << rank;
  }
}

TEST_F(TraceOf, UnknownPartsAreRefusedWithTheKnownOnes) {
  const auto refused = [&](const std::string& word) {
    const test::Ran ran =
        run(kTracedScenario, {"--trace", scratch_.path("t.json"), "--trace-of", word});
    EXPECT_EQ(ran.code, 2) << word;
    EXPECT_EQ(ran.out, "") << word;
    return ran.err;
  };
  EXPECT_TRUE(test::says(refused("nodes=8"), "cluster.nodes at a point of the sweep: 2, 4"));
  EXPECT_TRUE(test::says(refused("nodse=4"), "strategy, rank, cluster.nodes, "));
  EXPECT_TRUE(test::says(refused("rank=8"), "a rank of 0 to 3, cluster.nodes = 2"));
  EXPECT_TRUE(test::says(refused("rank=one"), "the number of a rank"));
  EXPECT_TRUE(test::says(refused("strategy=at onec"), "did you mean 'at once'"));
  EXPECT_TRUE(test::says(refused("nodes"), "expected KEY=VALUE"));
  EXPECT_TRUE(test::refused(run(kTracedScenario, {"--trace-of", "nodes=4"}), "needs --trace FILE"));
}

// The rows are the same whatever is looked at.
TEST_F(TraceOf, TheAnswerStaysAsItIs) {
  EXPECT_EQ(
      run(kTracedScenario, {}).out,
      run(kTracedScenario, {"--trace", scratch_.path("t.json"), "--trace-of", "nodes=4"}).out);
}

}  // namespace
}  // namespace syncline::cli
