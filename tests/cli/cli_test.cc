// The real program in a process of its own: exit codes, what goes to stdout and what to stderr,
// files that are there whole or not at all, and what is left behind when it is interrupted.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/expect.h"
#include "tests/support/program.h"

namespace syncline::cli {
namespace {

namespace fs = std::filesystem;

using test::comes_true;
using test::living;
using test::Program;
using test::Ran;
using test::syncline_words;
using test::text_of;
using Words = std::vector<std::string>;

Ran run(const Words& args) { return test::syncline_run(args); }

// Scenarios ---------------------------------------------------------------------------------------

Json small_scenario() {
  return Json::parse(R"({
    "name": "small",
    "workload": {"name": "two layers", "batch": 32, "forward_ms": 2, "tensors": [
      {"name": "b.w", "shape": [1000, 1000], "backward_us": 3000},
      {"name": "a.w", "shape": [500, 1000], "backward_us": 2000}]},
    "cluster": {"name": "four", "nodes": 4, "gpus_per_node": 1, "library": "links",
                "inter": {"latency_us": 10, "bandwidth_gbps": 10}},
    "strategies": [{"name": "plain"},
                   {"name": "fused", "streams": 2, "fusion": {"rule": "one"}}],
    "sweep": {"cluster.inter.bandwidth_gbps": [10, 100]}
  })");
}

// Rows that each take the simulation a good while: nothing is alike or alone on the network.
Json long_scenario(int points, int ranks) {
  Json root = small_scenario();
  Json tensors = Json::array();
  for (int t = 0; t < 30; ++t) {
    tensors.push_back(Json{
        {"name", "t" + std::to_string(t)}, {"shape", Json::array({100000})}, {"backward_us", 100}});
  }
  root["workload"]["tensors"] = tensors;
  root["cluster"]["nodes"] = ranks;
  Json values = Json::array();
  for (int i = 0; i < points; ++i) values.push_back(10 + i);
  root["sweep"] = Json{{"cluster.inter.bandwidth_gbps", values}};
  root["strategies"][0]["streams"] = 2;
  root["simulation"] = Json{{"grain", "step"}, {"fold", false}};
  return root;
}

class Cli : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return scratch_.path(name); }
  std::string written(const std::string& name, const std::string& text) const {
    test::write_text(file(name), text);
    return file(name);
  }
  std::string written(const Json& root) const { return written("scenario.json", root.dump(2)); }

  test::Scratch scratch_;
};

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// A wrong input is told in one line on stderr that begins with the program's name.
void expect_wrong_input(const Ran& ran, const std::string& part) {
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_EQ(ran.out, "");
  // Behind it, indented, where a file ceased to be JSON.
  std::size_t told = line_count(ran.err);
  for (std::size_t at = 0; (at = ran.err.find("\n  ", at)) != std::string::npos; ++at) --told;
  EXPECT_EQ(told, 1u) << ran.err;
  EXPECT_EQ(ran.err.rfind("syncline: ", 0), 0u) << ran.err;
  EXPECT_TRUE(test::says(ran.err, part));
}

// Help and mistakes on the command line -----------------------------------------------------------

TEST_F(Cli, VersionSaysWhatTheProgramIsMadeOf) {
  const Ran ran = run({"--version"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out.rfind("syncline ", 0), 0u) << ran.out;
  EXPECT_TRUE(test::says(ran.out, "\ncommit ", "\ncompiler ", "\nsimulator ", "\nbackends "));
}

TEST_F(Cli, MistakesOnTheCommandLineExitWithTwo) {
  const std::string scenario = written(small_scenario());
  const std::vector<Words> mistakes{
      {},
      {"frobnicate"},
      {"run"},
      {"run", scenario, "--frobnicate"},
      {"run", scenario, "--format", "yaml"},
      {"run", scenario, "--format"},
      {"run", scenario, "--executor", "abacus"},
      {"run", scenario, "--grain", "coarse"},
      {"run", scenario, scenario},
      {"plan"},
      {"check"},
      {"check", scenario, "--out", "x"},
      {"list", "extra"},
  };
  for (const auto& args : mistakes) {
    const Ran ran = run(args);
    std::string line;
    for (const auto& arg : args) line += arg + " ";
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_EQ(ran.out, "") << line;
    EXPECT_NE(ran.err, "") << line;
  }
}

TEST_F(Cli, AMisspeltVerbNamesTheNearest) {
  expect_wrong_input(run({"tnue", "x.json"}), "unknown command 'tnue' (did you mean 'tune'?)");
  expect_wrong_input(run({"frobnicate"}), "commands: init, run, tune, ");
  expect_wrong_input(run({"check"}), "syncline check --help");
}

TEST_F(Cli, TheModelHasNoGrain) {
  expect_wrong_input(run({"run", written(small_scenario()), "--grain", "step"}), "--executor sim");
}

TEST_F(Cli, AMissingFileIsNamed) {
  for (const char* verb : {"run", "plan", "check"}) {
    SCOPED_TRACE(verb);
    expect_wrong_input(run({verb, file("absent.json")}), file("absent.json") + ": no such file");
  }
}

TEST_F(Cli, WrongScenariosAreRefusedInOneLine) {
  expect_wrong_input(run({"run", scratch_.folder()}), "is a folder");
  expect_wrong_input(run({"run", written("empty.json", "")}), "empty file");
  expect_wrong_input(run({"check", written("cut.json", R"({"name": )")}),
                     "cut.json: not valid JSON");
  Json typo = small_scenario();
  typo["cluster"]["inter"]["latency_ms"] = 1;
  for (const char* verb : {"run", "plan", "check"}) {
    expect_wrong_input(run({verb, written(typo)}), "cluster.inter.latency_ms");
  }
  Json missing = small_scenario();
  missing["workload"] = "no_such_workload.json";
  expect_wrong_input(run({"run", written(missing)}), "no_such_workload.json");
}

TEST_F(Cli, TheLastSweepPointIsJudgedBeforeTheFirstIsEvaluated) {
  Json root = small_scenario();
  root["sweep"]["cluster.inter.bandwidth_gbps"] = {10, -1};
  for (const char* verb : {"run", "check"}) {
    expect_wrong_input(run({verb, written(root)}), "bandwidth_gbps");
  }
  EXPECT_FALSE(fs::exists(file("out")));
  expect_wrong_input(run({"run", written(root), "--out", file("out")}), "bandwidth_gbps");
  EXPECT_FALSE(fs::exists(file("out"))) << "a wrong scenario leaves nothing behind";
}

// run ---------------------------------------------------------------------------------------------

TEST_F(Cli, RunsInEveryFormat) {
  const std::string scenario = written(small_scenario());
  for (const char* executor : {"model", "sim"}) {
    std::map<std::string, std::string> answers;
    for (const char* format : {"table", "markdown", "csv", "json"}) {
      const Ran ran = run({"run", scenario, "--executor", executor, "--format", format});
      EXPECT_EQ(ran.code, 0) << format << ": " << ran.err;
      EXPECT_EQ(ran.err, "") << format;
      answers[format] = ran.out;
      EXPECT_TRUE(test::says(ran.out, "plain", "fused")) << format;
      ASSERT_FALSE(ran.out.empty());
      EXPECT_EQ(ran.out.back(), '\n') << format;
    }
    EXPECT_EQ(run({"run", scenario, "--executor", executor}).out, answers["table"]) << "default";
    EXPECT_EQ(line_count(answers["csv"]), 5u) << "a head and 2 x 2 rows\n" << answers["csv"];
    EXPECT_TRUE(test::says(answers["markdown"], "| "));
  }
}

TEST_F(Cli, JsonHasTheDocumentedKeys) {
  const Ran ran = run({"run", written(small_scenario()), "--format", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json report = Json::parse(ran.out);
  EXPECT_EQ(report.at("scenario"), "small");
  const std::string version = "syncline " + report.at("syncline").get<std::string>() + "\n";
  EXPECT_EQ(run({"--version"}).out.rfind(version, 0), 0u);
  ASSERT_TRUE(report.at("provenance").is_object());
  EXPECT_EQ(report["provenance"].at("executor"), "model");
  ASSERT_EQ(report.at("rows").size(), 4u);
  for (const auto& row : report["rows"]) {
    EXPECT_TRUE(row.at("strategy").is_string());
    EXPECT_EQ(row.at("executor"), "model");
    EXPECT_TRUE(row.at("sweep").at("cluster.inter.bandwidth_gbps").is_number());
    for (const char* key :
         {"step_time_s", "throughput", "speedup", "collectives", "bytes_on_wire_per_rank",
          "compute_s", "communication_s", "exposed_communication_s", "lower_bound_s"}) {
      ASSERT_TRUE(row.contains(key)) << key;
      EXPECT_TRUE(row.at(key).is_number()) << key;
    }
    const double step = row["step_time_s"];
    EXPECT_GT(step, 0);
    EXPECT_NEAR(row["throughput"].get<double>() * step, 4 * 32, 1e-6);
  }
  // Rows come sweep point by sweep point, strategies in the order of the file.
  EXPECT_EQ(report["rows"][0]["strategy"], "plain");
  EXPECT_EQ(report["rows"][1]["strategy"], "fused");
  EXPECT_EQ(report["rows"][2]["sweep"]["cluster.inter.bandwidth_gbps"], 100);
  EXPECT_EQ(report["rows"][0]["speedup"], 1);
}

TEST_F(Cli, TheSameScenarioGivesTheSameBytes) {
  const std::string scenario = written(small_scenario());
  for (const char* executor : {"model", "sim"}) {
    const auto once = run({"run", scenario, "--executor", executor, "--format", "json"}).out;
    EXPECT_EQ(run({"run", scenario, "--executor", executor, "--format", "json"}).out, once);
  }
}

TEST_F(Cli, GrainIsChosenOnTheCommandLine) {
  // 4 ranks and a tree: the two grains differ by something, the simulation and the model agree.
  Json root = small_scenario();
  root["strategies"][0]["algorithm"] = "double_binary_tree";
  const std::string scenario = written(root);
  const auto step_times = [&](const Words& options) {
    const auto args = test::joined({"run", scenario, "--format", "json"}, options);
    return Json::parse(test::syncline_out(args))["rows"][0]["step_time_s"].get<double>();
  };
  const double model = step_times({});
  EXPECT_NEAR(step_times({"--executor", "sim"}), model, 0.01 * model);
  EXPECT_NEAR(step_times({"--executor", "sim", "--grain", "step"}), model, 0.1 * model);
}

// Files -------------------------------------------------------------------------------------------

TEST_F(Cli, OutWritesTheWholeFolder) {
  const std::string scenario = written(small_scenario());
  const std::string out = file("deep/er/out");
  const Ran ran = run({"run", scenario, "--out", out});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(out)) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"report.txt", "report.md", "rows.csv", "report.json",
                                          "trace.json"}));
  EXPECT_EQ(text_of(out + "/report.txt"), run({"run", scenario, "--verbose"}).out);
  for (const auto& [format, name] : std::map<std::string, std::string>{
           {"markdown", "report.md"}, {"csv", "rows.csv"}, {"json", "report.json"}}) {
    EXPECT_EQ(text_of(out + "/" + name), run({"run", scenario, "--format", format}).out);
  }
  EXPECT_TRUE(Json::parse(text_of(out + "/trace.json")).contains("traceEvents"));
}

TEST_F(Cli, OutThatCannotBeMadeLeavesNothing) {
  const std::string scenario = written(small_scenario());
  written("in_the_way", "a file");
  const Ran ran = run({"run", scenario, "--out", file("in_the_way/out")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.out, "") << "an answer would promise files that are not there";
  EXPECT_EQ(line_count(ran.err), 1u) << ran.err;
  EXPECT_TRUE(test::says(ran.err, "in_the_way/out"));
  EXPECT_EQ(text_of(file("in_the_way")), "a file");
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(scratch_.folder())) {
    names.insert(entry.path().filename());
  }
  EXPECT_EQ(names, (std::set<std::string>{"scenario.json", "in_the_way"}));
}

TEST_F(Cli, AReportThatCannotBeWrittenKeepsTheOldOne) {
  const std::string scenario = written(small_scenario());
  const std::string out = file("out");
  // A folder stands where a file should: renaming onto it fails, whoever runs the test.
  fs::create_directories(out + "/report.md/keep");
  const Ran ran = run({"run", scenario, "--out", out});
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.out, "") << "known before the work";
  EXPECT_TRUE(test::says(ran.err, "report.md"));
  EXPECT_TRUE(fs::exists(out + "/report.md/keep"));
  for (const auto& entry : fs::directory_iterator(out)) {
    EXPECT_TRUE(test::lacks(entry.path().string(), "partial")) << entry.path();
  }
}

TEST_F(Cli, TraceHasOneTrackAStreamAndRank) {
  Json root = small_scenario();
  root["cluster"]["jitter"] = {{"distribution", "normal"}, {"relative", 0.05}};
  root["simulation"] = {{"periods", 3}};
  const std::string scenario = written(root);
  for (const char* executor : {"model", "sim"}) {
    const std::string path = file(std::string(executor) + ".json");
    ASSERT_EQ(run({"run", scenario, "--executor", executor, "--trace", path, "--trace-of",
                   "strategy=plain", "--trace-of", "strategy=fused"})
                  .code,
              0);
    const Json trace = Json::parse(text_of(path));
    using Track = std::pair<std::int64_t, std::int64_t>;
    std::set<Track> named;
    std::map<std::int64_t, std::string> processes;
    std::map<std::int64_t, std::set<std::string>> streams;
    std::map<Track, double> until;
    for (const auto& event : trace.at("traceEvents")) {
      const Track track{event.at("pid"), event.value("tid", std::int64_t{-1})};
      if (event.at("ph") == "M" && event.at("name") == "process_name") {
        processes[track.first] = event.at("args").at("name");
      }
      if (event.at("ph") == "M" && event.at("name") == "thread_name") {
        EXPECT_TRUE(named.insert(track).second) << "a track is named twice";
        const bool fresh = streams[track.first].insert(event.at("args").at("name")).second;
        EXPECT_TRUE(fresh) << event.dump();
      }
      if (event.at("ph") != "X") continue;
      EXPECT_TRUE(named.contains(track)) << event.dump();
      // One stream does one thing at a time.
      EXPECT_GE(event.at("ts").get<double>(), until[track] - 2e-3) << event.dump();
      EXPECT_GE(event.at("dur").get<double>(), 0);
      until[track] = event.at("ts").get<double>() + event.at("dur").get<double>();
    }
    // `plain` has one communication stream; `fused` has two, and one bucket for them.
    const std::size_t ranks = std::string(executor) == "sim" ? 4 : 1;
    EXPECT_EQ(processes.size(), 2 * ranks) << executor;
    for (const auto& [process, names] : streams) {
      EXPECT_EQ(names, (std::set<std::string>{"compute", "communication 1", "launches", "steps"}))
          << processes[process];
    }
  }
}

TEST_F(Cli, TraceOfAThousandRanksStaysSmall) {
  Json root = small_scenario();
  root["workload"] = std::string(SYNCLINE_SOURCE_DIR) + "/scenarios/workloads/resnet101_v100.json";
  root["cluster"] = Json::parse(R"({"name": "many", "nodes": 128, "gpus_per_node": 8,
    "intra": {"latency_us": 3, "bandwidth_gbps": 1000},
    "inter": {"latency_us": 10, "bandwidth_gbps": 100},
    "jitter": {"distribution": "exponential", "relative": 0.02}})");
  root["simulation"] = {{"periods", 5}};
  root.erase("sweep");
  for (int s = 2; s <= 4; ++s) {
    root["strategies"].push_back({{"name", std::to_string(s) + " streams"}, {"streams", s}});
  }
  const std::string trace = file("trace.json");
  for (const char* executor : {"model", "sim"}) {
    Words words{"run", written(root), "--executor", executor, "--trace", trace};
    for (const auto& strategy : root["strategies"]) {
      words.insert(words.end(), {"--trace-of", "strategy=" + strategy["name"].get<std::string>()});
    }
    const Ran ran = run(words);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_LT(fs::file_size(trace), 10'000'000u) << executor;
    EXPECT_GT(fs::file_size(trace), 10'000u) << executor;
    const Json parsed = Json::parse(text_of(trace), nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << executor;
  }
}

TEST_F(Cli, AFullDiskIsAFailingMachine) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const std::string scenario = written(small_scenario());
  for (const Words& args : {Words{"run", scenario},
                            {"run", scenario, "--format", "json"},
                            {"run", scenario, "--format", "csv"},
                            {"run", scenario, "--executor", "sim"},
                            {"plan", scenario},
                            {"check", scenario},
                            {"list"}}) {
    const Ran ran = Program(syncline_words(args), {}, [] {
                      ::dup2(::open("/dev/full", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
                    }).wait();
    EXPECT_TRUE(test::failed(ran, 3, "standard output"));
    EXPECT_EQ(line_count(ran.err), 1u) << ran.err;
  }
  const Ran ran = run({"run", scenario, "--trace", "/dev/full/trace.json"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.out, "");
}

// What a node's name stands for is in no key of the document.
TEST_F(Cli, TuneReadsTheLinksOfANamedNode) {
  for (const char* node : {"dgx-h100", "dgx-a100", "p3dn.24xlarge"}) {
    Json scenario = small_scenario();
    scenario["cluster"] = {{"node", node}, {"nodes", 4}};
    scenario["strategies"] =
        Json::array({{{"name", "plain"}},
                     {{"name", "dgc"}, {"compression", {{"codec", "dgc"}, {"sparsity", {0.99}}}}}});
    scenario.erase("baseline");
    scenario.erase("sweep");
    const Ran ran = run({"tune", written(scenario), "--budget", "5"});
    EXPECT_EQ(ran.code, 0) << node << ": " << ran.err;
  }
}

// As behind `| head`: what was read is what was wanted.
TEST_F(Cli, APipeThatIsClosedIsNoError) {
  const std::string scenario = written(small_scenario());
  for (const Words& args : {Words{"run", scenario},
                            {"run", scenario, "--format", "json"},
                            {"plan", scenario},
                            {"buckets", scenario},
                            {"tune", scenario, "--budget", "5", "--format", "json"},
                            {"check", scenario},
                            {"list"},
                            {"--help"}}) {
    const Ran ran = Program(syncline_words(args), {}, [] {
                      int ends[2];
                      if (::pipe(ends) != 0) ::_exit(9);
                      ::close(ends[0]);
                      ::dup2(ends[1], STDOUT_FILENO);
                      ::close(ends[1]);
                    }).wait();
    EXPECT_EQ(ran.code, 0) << args.front() << ": " << ran.err;
    EXPECT_FALSE(test::contains(ran.err, "standard output")) << args.front() << ": " << ran.err;
  }
}

// plan, check, list -------------------------------------------------------------------------------

TEST_F(Cli, PlanListsTheOperationsOfAStrategy) {
  const std::string scenario = written(small_scenario());
  const Ran first = run({"plan", scenario});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.err, "");
  EXPECT_TRUE(test::says(first.out, "plain on four: 4 ranks, 2 streams, 6 operations, 2 buckets"));
  EXPECT_EQ(run({"plan", scenario, "--strategy", "plain"}).out, first.out);
  const Ran fused = run({"plan", scenario, "--strategy", "fused"});
  EXPECT_TRUE(test::says(fused.out, "fused on four: 4 ranks, 3 streams, 4 operations, 1 bucket"));
  EXPECT_TRUE(test::says(fused.out, "forward", "backward", "all_reduce", "update", "5.722 MiB"));
}

TEST_F(Cli, PlanSuggestsTheNearestStrategy) {
  const Ran ran = run({"plan", written(small_scenario()), "--strategy", "fussed"});
  expect_wrong_input(ran, "did you mean 'fused'?");
  EXPECT_TRUE(test::says(ran.err, "it has 'plain', 'fused'"));
}

TEST_F(Cli, CheckShowsTheScenariosContents) {
  const std::string scenario = written(small_scenario());
  const Ran ran = run({"check", scenario});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out.rfind(scenario + ": correct\n", 0), 0u) << ran.out;
  EXPECT_TRUE(test::says(ran.out, "2 gradients, 5.722 MiB", "4 nodes x 1 GPU\n",
                         "2 strategies x 2 sweep points"));
  EXPECT_TRUE(test::lacks(ran.out, "Notes:"));

  Json one = small_scenario();
  one.erase("sweep");
  one["strategies"].erase(1);
  EXPECT_TRUE(test::says(run({"check", written(one)}).out, "1 strategy x 1 sweep point\n"));

  Json odd = small_scenario();
  odd["workload"].erase("forward_ms");
  for (auto& tensor : odd["workload"]["tensors"]) tensor.erase("backward_us");
  odd["strategies"][0]["local_sgd"] = {{"period", 1}};
  odd["strategies"][1]["compression"] = {{"codec", "dgc"}};
  const Ran notes = run({"check", written(odd)});
  EXPECT_EQ(notes.code, 0) << notes.err;
  EXPECT_TRUE(test::says(notes.out, "no compute times", "period 1", "memory_gbytes_per_s"));
}

// Signals -----------------------------------------------------------------------------------------

// A single row of so many ranks, step by step, takes minutes: whoever is gone before was ended.
constexpr int kHugeRanks = 512;

// Waits until the program has simulated a few rows: each has a process of its own.
bool rows_under_way(const Program& running, std::size_t rows) {
  std::set<pid_t> children;
  return comes_true([&] {
    for (const pid_t pid : living(running.pid())) {
      if (pid != running.pid()) children.insert(pid);
    }
    return children.size() > rows;
  });
}

constexpr int kPoints = 2000;

// Rows of CSV that Ctrl-C ends after some, and nobody goes on.
Ran interrupted_rows(const std::string& scenario, const Words& more) {
  Program running(syncline_words(
      test::joined({"run", scenario, "--executor", "sim", "--format", "csv"}, more)));
  EXPECT_TRUE(rows_under_way(running, 3));
  ::kill(-running.pid(), SIGINT);  // a terminal tells the whole group
  const Ran ran = running.wait_for_program();
  EXPECT_EQ(ran.code, 130) << "signal " << ran.signal << "\n" << ran.err;
  EXPECT_LT(line_count(ran.out), 2u * kPoints) << "not all of them";
  EXPECT_EQ(ran.out.rfind("strategy,", 0), 0u);
  EXPECT_TRUE(comes_true([&] { return living(running.pid()).empty(); })) << "an orphan goes on";
  return ran;
}

TEST_F(Cli, CtrlCPrintsTheRowsSoFarAndLeavesNobody) {
  const std::string scenario = written(long_scenario(kPoints, 16));
  const Ran ran = interrupted_rows(scenario, {});
  EXPECT_GT(line_count(ran.out), 1u) << "at least one row";
  EXPECT_TRUE(ran.out.ends_with("\r\n"));
  const std::size_t rows = line_count(ran.out) - 1;
  EXPECT_TRUE(test::says(ran.err, "interrupted after " + std::to_string(rows) + " of " +
                                      std::to_string(2 * kPoints) + " rows\n"));
  interrupted_rows(scenario, {"--jobs", "3"});
}

// Each row is there once it is evaluated, and whole, so that a program that is killed has left
// them.
TEST_F(Cli, RowsOfCsvComeWhileOthersAreEvaluated) {
  const std::string scenario = written(long_scenario(2000, 16));
  for (const char* jobs : {"1", "3"}) {
    Program running(
        syncline_words({"run", scenario, "--executor", "sim", "--format", "csv", "--jobs", jobs}));
    ASSERT_TRUE(comes_true([&] { return line_count(running.out()) > 5; })) << jobs;
    ::kill(running.pid(), SIGKILL);
    const Ran ran = running.wait_for_program();
    EXPECT_EQ(ran.signal, SIGKILL);
    EXPECT_TRUE(ran.out.ends_with("\r\n")) << jobs;
  }
}

// Whoever reads the first rows alone, as `head` does, ends the run.
TEST_F(Cli, ARunEndsWhenItsReaderHasGone) {
  const std::string scenario = written(long_scenario(2000, 16));
  const Ran ran =
      test::shell("{ '" SYNCLINE_BINARY "' run '" + scenario + "' --executor sim --format csv 2>'" +
                  file("said") + "'; echo $? >'" + file("code") + "'; } | head -2");
  EXPECT_EQ(line_count(ran.out), 2u);
  EXPECT_EQ(text_of(file("code")), "0\n");
  EXPECT_TRUE(test::lacks(text_of(file("said")), "standard output", "interrupted"));
}

TEST_F(Cli, CtrlCStillWritesFilesAndSaysThatTheyAreNotWhole) {
  const std::string scenario = written(long_scenario(2000, 16));
  Program running(syncline_words(
      {"run", scenario, "--executor", "sim", "--format", "json", "--out", file("out")}));
  ASSERT_TRUE(rows_under_way(running, 3));
  ::kill(-running.pid(), SIGINT);
  const Ran ran = running.wait_for_program();
  EXPECT_EQ(ran.code, 130) << ran.err;
  const Json report = Json::parse(ran.out, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << ran.out;
  EXPECT_EQ(report.value("complete", true), false);
  EXPECT_GE(report.at("rows").size(), 1u);
  EXPECT_EQ(text_of(file("out/report.json")), ran.out);
}

// The moment matters: the simulation's process may just have begun, or be at work.
TEST_F(Cli, AKilledParentTakesItsJobsAndItsSimulationWithIt) {
  struct Case {
    int points;
    Words jobs;
    std::size_t processes;  // at least, the parent among them
    std::vector<int> milliseconds;
  };
  for (const Case& one : {Case{3, {"--jobs", "3"}, 7, {0, 5, 200}},
                          Case{1, {}, 2, {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 5, 10, 200}}}) {
    const std::string scenario = written(long_scenario(one.points, kHugeRanks));
    for (const int after : one.milliseconds) {
      SCOPED_TRACE(std::to_string(one.points) + " points, killed after " + std::to_string(after) +
                   " ms");
      Program running(
          syncline_words(test::joined({"run", scenario, "--executor", "sim"}, one.jobs)));
      ASSERT_TRUE(comes_true([&] { return living(running.pid()).size() >= one.processes; }));
      std::this_thread::sleep_for(std::chrono::milliseconds(after));
      ::kill(running.pid(), SIGKILL);  // the parent alone
      EXPECT_EQ(running.wait_for_program().signal, SIGKILL);
      ASSERT_TRUE(comes_true([&] { return living(running.pid()).empty(); })) << "an orphan goes on";
    }
  }
}

TEST_F(Cli, TheSecondCtrlCEndsAtOnce) {
  const std::string scenario = written(long_scenario(1, kHugeRanks));
  Program running(syncline_words({"run", scenario, "--executor", "sim"}));
  ASSERT_TRUE(rows_under_way(running, 0));
  ::kill(-running.pid(), SIGINT);
  // Signals of a kind do not queue: the second must come after the first was taken.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(-running.pid(), SIGINT);
  const Ran ran = running.wait_for_program();
  EXPECT_EQ(ran.signal, SIGINT) << "code " << ran.code;
  EXPECT_TRUE(comes_true([&] { return living(running.pid()).empty(); })) << "an orphan goes on";
}

TEST_F(Cli, AKilledSimulationIsAFailingMachine) {
  const std::string scenario = written(long_scenario(1, kHugeRanks));
  Program running(syncline_words({"run", scenario, "--executor", "sim"}));
  pid_t child = 0;
  ASSERT_TRUE(comes_true([&] {
    for (const pid_t pid : living(running.pid())) {
      if (pid != running.pid()) child = pid;
    }
    return child != 0;
  }));
  ::kill(child, SIGKILL);
  const Ran ran = running.wait_for_program();
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(line_count(ran.err), 1u) << ran.err;
  EXPECT_TRUE(test::says(ran.err, "ended by signal 9"));
}

}  // namespace
}  // namespace syncline::cli
