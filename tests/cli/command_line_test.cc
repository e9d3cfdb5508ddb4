// What is typed wrong on the command line is told in the words of whoever typed it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/json/json.h"
#include "tests/support/expect.h"
#include "tests/support/program.h"
#include "tests/support/scratch.h"

namespace syncline::cli {
namespace {

using test::kFirst;

std::string refusal(const std::vector<std::string>& arguments) {
  const auto ran = test::syncline_run(arguments);
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  return ran.err;
}

TEST(Messages, ABudgetBelowZero) {
  const std::string text = refusal({"tune", kFirst, "--budget", "-5"});
  EXPECT_TRUE(test::says(text, "--budget: found -5, expected 0 or more"));
  EXPECT_LT(text.size(), 120U) << text;
}

TEST(Messages, TheNearestOptionIsNamed) {
  EXPECT_EQ(refusal({"run", kFirst, "--fromat", "json"}),
            "syncline: unknown option '--fromat' (did you mean '--format'?); see syncline run "
            "--help\n");
  EXPECT_TRUE(test::says(refusal({"run", kFirst, "--fromat=json"}), "'--fromat'"));
  EXPECT_TRUE(test::says(refusal({"run", kFirst, "left over"}), "left over"));
}

// One row a mistake: what was typed, and what helps.
TEST(Messages, MistakesOnTheCommandLineAreMet) {
  struct Row {
    std::vector<std::string> typed;
    const char* said;
  };
  const Row rows[] = {
      {{kFirst}, "did you mean 'syncline run "},
      {{"run"}, "syncline: FILE is missing; see syncline run --help"},
      {{"compare"}, "COMMANDS is missing"},
      {{"lab", "true"}, "--rate is missing"},
      {{"base.json"},
       "'base.json' is a file, not a command: did you mean 'syncline run base.json'?"},
      {{"import", kFirst}, "first.json: a scenario, nothing to import: `syncline run "},
      {{"run", kFirst, "--json"}, "unknown option '--json' (did you mean '--format'?)"},
      {{"run", "--fromat", "json"}, "unknown option '--fromat' (did you mean '--format'?)"},
      {{"run", kFirst, "--gpus", "8"}, "unknown option '--gpus'; see"},
      {{"check", kFirst, "-o", "out"}, "unknown option '-o'"},
      {{"emit", kFirst, "--dialect", "pytroch"}, "(did you mean 'pytorch'?)"},
      {{"init", "resnet50", "--node", "H100"},
       "(did you mean one of 'dgx-h100', 'p5.48xlarge', 'a3-highgpu-8g', "},
      {{"init", "resnet50", "--node", "p4d"}, "(did you mean 'p4d.24xlarge'?)"},
      {{"init", "meta-llama/Llama-3.1-8B", "--node", "dgx-h100"},
       "(did you mean 'llama3_8b'?); give the file config.json of it"},
      {{"--verson"}, "unknown option '--verson' (did you mean '--version'?)"},
      {{"list", "modles"}, "list: found 'modles', the kinds are"},
      {{"run", kFirst, "--set", "sweep={\"cluster.nodes\":[1,2]"},
       "--set sweep: '{\"cluster.nodes\":[1,2]' is not valid JSON"},
      {{"run", kFirst, "--set", "cluster.nodes=8,16"}, "--set 'sweep={\"cluster.nodes\": [8,16]}'"},
      {{"run", kFirst, "--set", "cluster.inter.bandwidth=10"},
       "bandwidth: unknown key (did you mean 'bandwidth_gbps'?)"},
      {{"run", kFirst, "--set", "sweep={\"nodes\": [2, 4]}"},
       "nodes: unknown key (did you mean 'cluster.nodes'?)"},
      {{"run", kFirst, "--set", "workload.sequence=128"},
       "sequence: unknown key (did you mean 'operators.sequence'?)"},
      {{"run", kFirst, "--set", "cluster.device=a100"},
       "did you mean one of 'a100-pcie-80gb', 'a100-sxm-80gb', 'a100-pcie-40gb', "
       "'a100-sxm-40gb'?"},
      {{"run", kFirst, "--set", "strategies.0.dialect=ddp", "--set", "strategies.0.config={}"},
       "(did you mean 'pytorch'?)"},
  };
  for (const Row& row : rows) {
    const std::string text = refusal(row.typed);
    EXPECT_TRUE(test::says(text, row.said));
  }
}

// Words that mean one of the known ones for certain are taken as that one.
TEST(Messages, CertainWordsAreUnderstood) {
  const std::vector<std::vector<std::string>> typed{
      {"version"},
      {"-V"},
      {"help"},
      {"help", "run"},
      {"run", kFirst, "--format", "JSON"},
      {"init", "Llama-3-8B", "--node", "DGX-H100", "--dtype", "bfloat16"}};
  for (const auto& words : typed) {
    const std::string ran = test::syncline_out(words);
    EXPECT_NE(ran, "") << words.front();
  }
  EXPECT_EQ(test::syncline_run({"help", "run"}).out, test::syncline_run({"run", "--help"}).out);
}

// Uncertain inputs change the first words of `check`, and stand before every verb's results.
TEST(Messages, DoubtfulInputIsNotJustCorrect) {
  const std::vector<std::string> mistake{"--set", "strategies.0.dialect=horovod", "--set",
                                         "strategies.0.config={\"HOROVOD_CYCLE_TIME\": 0.005}"};
  const auto say = [&](const std::vector<std::string>& words, bool slipped) {
    return test::syncline_run(slipped ? test::joined(words, mistake) : words).out;
  };
  const std::string three = test::scratch().path("three.json");
  std::ofstream(three) << R"({"name": "three", "strategies": [{"name": "s"}],
    "workload": {"name": "w", "forward_ms": 1, "tensors": [
      {"name": "fc2.weight", "shape": [10, 64], "backward_us": 100},
      {"name": "fc1.weight", "shape": [64, 32], "backward_us": 100}]},
    "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1, "device": {"memory_gbytes_per_s": 800},
                "inter": {"latency_us": 10, "bandwidth_gbps": 100}}})";
  EXPECT_TRUE(say({"check", three}, false).starts_with(three + ": correct\n"));
  const std::string checked = say({"check", three}, true);
  EXPECT_TRUE(checked.starts_with(three + ": correct, but doubtful\n\nDoubtful:\n")) << checked;
  for (const char* verb : {"run", "explain", "tune", "plan"}) {
    const std::string out = say({verb, three}, true);
    const std::size_t at = out.find("Doubtful:\n- strategy 's': HOROVOD_CYCLE_TIME");
    EXPECT_LT(at, 200U) << verb << out;
    EXPECT_TRUE(test::lacks(say({verb, three}, false), "Doubtful")) << verb;
  }
  for (const char* verb : {"check", "run", "explain", "tune", "plan"}) {
    const Json said = Json::parse(say({verb, three, "--format", "json"}, true));
    ASSERT_EQ(said.at("doubts").size(), 1U) << verb;
    EXPECT_EQ(said.at("remarks").at(0), said.at("doubts").at(0)) << verb;
  }
}

TEST(Messages, StrategiesAreQuoted) {
  const std::string text = refusal({"explain", kFirst, "--strategy", "nothing like it"});
  EXPECT_TRUE(test::says(text, "; it has '", "', '"));
}

TEST(Messages, AModelIsReadBeforeAnyWork) {
  const std::string text = refusal({"tune", SYNCLINE_SOURCE_DIR "/scenarios/live/tune_2x1gbit.json",
                                    "--live", "emulated", "--wrong", "latency"});
  EXPECT_TRUE(text.starts_with("syncline: --wrong: found 'latency'")) << text;
}

TEST(Messages, EmitOffersWhatItCanWrite) {
  const std::string text = refusal({"emit", kFirst, "--dialect", "paddle_dygraph"});
  EXPECT_TRUE(test::says(text, "paddle_dygraph not in {"));
  EXPECT_TRUE(test::lacks(test::syncline_run({"emit", "--help"}).out, "paddle_dygraph"));
}

// The scenario as every verb takes it: from a file or standard input, changed on the way.

using test::syncline_run;

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
  EXPECT_TRUE(test::says(fed(file, {"check", "-"}).out, "standard input: correct"));
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
  EXPECT_TRUE(test::says(fed("/dev/null", {"run", "-"}).err, "standard input: empty file"));
}

TEST(ScenarioOption, RanksDoNotShareStandardInput) {
  const auto ran = fed(kFirst, {"validate", "-", "--ranks", "2"});
  EXPECT_TRUE(test::refused(ran, "each rank reads the scenario"));
}

TEST(ScenarioOption, EveryVerbThatReadsOneTakesSet) {
  const test::Scratch scratch;
  const std::string file = whole_scenario(scratch);
  for (const auto& verb : kReaders) {
    const auto ran = syncline_run(test::joined(words(verb, file), {"--set", "cluster.nodes=none"}));
    EXPECT_TRUE(test::refused(ran, "cluster.nodes: found 'none'")) << verb[0];
  }
  EXPECT_TRUE(
      test::says(syncline_run({"run", kFirst, "--set", "nothing"}).err, "expected KEY=VALUE"));
}

TEST(ScenarioOption, StrategyChoosesRows) {
  const std::string ran =
      test::syncline_out({"run", kFirst, "--strategy", "sparse", "--format", "csv"});
  EXPECT_TRUE(test::says(ran, "sparse", "all at the end"));  // the baseline
  EXPECT_TRUE(test::lacks(ran, "one by one"));
  for (const auto& verb : kReaders) {
    const auto wrong = syncline_run(test::joined(words(verb, kFirst), {"--strategy", "spares"}));
    EXPECT_TRUE(test::refused(wrong, "(did you mean 'sparse'?)")) << verb[0];
  }
}

TEST(ScenarioOption, TuneStartsFromAStrategy) {
  const std::string ran = test::syncline_out(
      {"tune", kFirst, "--strategy", "one by one", "--budget", "50", "--verbose"});
  EXPECT_TRUE(test::says(ran, "baseline: one by one", "Not varied from 'one by one'"));
}

TEST(ScenarioOption, AllMistakesAreReportedAtOnce) {
  const auto ran = syncline_run({"check", kFirst, "--set", "seed=-1", "--set", "name=3", "--set",
                                 "cluster.inter.bandwidth_gbps=-1"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 3) << ran.err;
  EXPECT_TRUE(test::says(ran.err, ": seed: ", ": name: ", ": cluster.inter.bandwidth_gbps: "));
}

TEST(ScenarioOption, FilesThatAreWrittenAreNamed) {
  const test::Scratch scratch;
  const std::string svg = scratch.path("c.svg"), csv = scratch.path("c.csv");
  const auto ran = syncline_run({"tune", kFirst, "--budget", "50", "--svg", svg, "--csv", csv});
  EXPECT_EQ(ran.err, "syncline: wrote " + svg + " and " + csv + "\n");
  const auto missing =
      syncline_run({"tune", kFirst, "--python", scratch.path("no/such/x.py"), "--emit", "pytorch"});
  EXPECT_TRUE(test::refused(missing, "no such folder"));
  EXPECT_EQ(missing.out, "");  // before the work
}

}  // namespace
}  // namespace syncline::cli
