// The scenario as every verb takes it: from a file or standard input, changed on the way.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/program.h"
#include "tests/support/text.h"

namespace syncline::cli {
namespace {

using test::contains;
using test::syncline_run;

const std::string kFirst = SYNCLINE_SOURCE_DIR "/scenarios/first.json";

// `syncline` with a file as its standard input.
test::Ran fed(const std::string& file, const std::vector<std::string>& arguments) {
  return test::Program(test::syncline_words(arguments), {},
                       [&file] { ::dup2(::open(file.c_str(), O_RDONLY), STDIN_FILENO); })
      .wait();
}

// A scenario that needs no other file, as standard input has no folder.
std::string whole_scenario(const test::Scratch& scratch) {
  const std::string path = scratch.path("whole.json");
  const auto begun = syncline_run({"init", "gpt2_small", "--node", "dgx-h100", "-o", path});
  EXPECT_EQ(begun.code, 0) << begun.err;
  return path;
}

const std::vector<std::vector<std::string>> kReaders{{"run"},
                                                     {"check"},
                                                     {"explain"},
                                                     {"plan"},
                                                     {"buckets"},
                                                     {"tune", "--budget", "50"},
                                                     {"emit", "--dialect", "pytorch"}};

std::vector<std::string> words(std::vector<std::string> verb, const std::string& file) {
  verb.insert(verb.begin() + 1, file);
  return verb;
}

TEST(ScenarioOption, ADashReadsStandardInput) {
  const test::Scratch scratch;
  const std::string file = whole_scenario(scratch);
  for (const auto& verb : kReaders) {
    const auto from_file = syncline_run(words(verb, file));
    const auto from_input = fed(file, words(verb, "-"));
    EXPECT_EQ(from_input.code, from_file.code) << verb[0] << from_input.err;
    if (verb[0] == "check") continue;  // names its file
    EXPECT_EQ(from_input.out, from_file.out) << verb[0];
  }
  EXPECT_TRUE(contains(fed(file, {"check", "-"}).out, "standard input: correct"));
}

TEST(ScenarioOption, MessagesNameStandardInput) {
  const test::Scratch scratch;
  test::write_text(scratch.path("cut.json"), "{\"name\": \"x\",\n}");
  const auto ran = fed(scratch.path("cut.json"), {"run", "-"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err,
            "syncline: standard input: not valid JSON: a comma before '}' (line 1)\n"
            "  1 | {\"name\": \"x\",\n"
            "                  ^\n");
  EXPECT_TRUE(contains(fed("/dev/null", {"run", "-"}).err, "standard input: empty file"));
}

TEST(ScenarioOption, RanksDoNotShareStandardInput) {
  const auto ran = fed(kFirst, {"validate", "-", "--ranks", "2"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, "each rank reads the scenario")) << ran.err;
}

TEST(ScenarioOption, EveryVerbThatReadsOneTakesSet) {
  const test::Scratch scratch;
  const std::string file = whole_scenario(scratch);
  for (auto verb : kReaders) {
    verb = words(verb, file);
    verb.insert(verb.end(), {"--set", "cluster.nodes=none"});
    const auto ran = syncline_run(verb);
    EXPECT_EQ(ran.code, 2) << verb[0];
    EXPECT_TRUE(contains(ran.err, "cluster.nodes: found 'none'")) << verb[0] << ran.err;
  }
  EXPECT_TRUE(
      contains(syncline_run({"run", kFirst, "--set", "nothing"}).err, "expected KEY=VALUE"));
}

TEST(ScenarioOption, StrategyChoosesRows) {
  const auto ran = syncline_run({"run", kFirst, "--strategy", "sparse", "--format", "csv"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "sparse"));
  EXPECT_TRUE(contains(ran.out, "all at the end"));  // the baseline
  EXPECT_FALSE(contains(ran.out, "one by one"));
  for (auto verb : kReaders) {
    verb = words(verb, kFirst);
    verb.insert(verb.end(), {"--strategy", "spares"});
    const auto wrong = syncline_run(verb);
    EXPECT_EQ(wrong.code, 2) << verb[0];
    EXPECT_TRUE(contains(wrong.err, "(did you mean 'sparse'?)")) << verb[0] << wrong.err;
  }
}

TEST(ScenarioOption, TuneStartsFromAStrategy) {
  const auto ran =
      syncline_run({"tune", kFirst, "--strategy", "one by one", "--budget", "50", "--verbose"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "baseline: one by one"));
  EXPECT_TRUE(contains(ran.out, "Held as in 'one by one'"));
}

TEST(ScenarioOption, AllMistakesAreToldAtOnce) {
  const auto ran = syncline_run({"check", kFirst, "--set", "seed=-1", "--set", "name=3", "--set",
                                 "cluster.inter.bandwidth_gbps=-1"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 3) << ran.err;
  for (const char* place : {": seed: ", ": name: ", ": cluster.inter.bandwidth_gbps: "}) {
    EXPECT_TRUE(contains(ran.err, place)) << ran.err;
  }
}

TEST(ScenarioOption, FilesThatAreWrittenAreNamed) {
  const test::Scratch scratch;
  const std::string svg = scratch.path("c.svg"), csv = scratch.path("c.csv");
  const auto ran = syncline_run({"tune", kFirst, "--budget", "50", "--svg", svg, "--csv", csv});
  EXPECT_EQ(ran.err, "syncline: wrote " + svg + " and " + csv + "\n");
  const auto missing =
      syncline_run({"tune", kFirst, "--python", scratch.path("no/such/x.py"), "--emit", "pytorch"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_EQ(missing.out, "");  // before the work
}

}  // namespace
}  // namespace syncline::cli
