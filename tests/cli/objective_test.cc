// `run` and `tune` by the time of a training to its target.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/json/json.h"
#include "tests/support/expect.h"
#include "tests/support/program.h"
#include "tests/support/said.h"
#include "tests/support/scratch.h"

namespace syncline::cli {
namespace {

using test::Said;
using test::say;
using test::scratch;

std::string job_text(const std::string& name, const std::string& text) {
  test::write_text(scratch().path(name), text);
  return scratch().path(name);
}

std::string job_file() {
  return job_text("objective.json", R"({"name": "a job",
      "workload": {"name": "w", "forward_ms": 5, "tensors": [
        {"name": "b", "shape": [1000000], "backward_us": 4000},
        {"name": "a", "shape": [1000000], "backward_us": 4000}]},
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1, "library": "gloo",
                  "inter": {"latency_us": 50, "bandwidth_gbps": 1}},
      "baseline": "dense",
      "strategies": [{"name": "dense"},
                     {"name": "rare", "local_sgd": {"period": 4}, "fusion": {"rule": "one"}},
                     {"name": "wild", "local_sgd": {"period": 64}, "fusion": {"rule": "one"}},
                     {"name": "untrained", "fusion": {"rule": "layer"}}]})");
}

std::string curves(const std::string& over = "step", double scale = 1) {
  std::string text = "strategy,seed," + over + ",accuracy\n";
  const auto add = [&](const std::string& name, double slope) {
    for (int seed = 1; seed <= 3; ++seed) {
      for (int i = 0; i <= 10; ++i) {
        text += name + "," + std::to_string(seed) + "," + std::to_string(20 * i * scale) + "," +
                std::to_string(slope * i * (1 + 0.05 * seed)) + "\n";
      }
    }
  };
  add("dense", 0.15);
  add("rare", 0.13);
  add("wild", 0.01);
  return job_text("objective_" + over + ".csv", text);
}

std::vector<std::string> asked(const std::string& verb, const std::vector<std::string>& more = {}) {
  return test::joined({verb, job_file(), "--objective", "time_to_accuracy", "--target", "0.9",
                       "--curves", curves()},
                      more);
}

TEST(ObjectiveOption, RanksByTheTimeToTheTarget) {
  const Said said = say(asked("run", {"--format", "json"}));
  ASSERT_EQ(said.code, 0) << said.err;
  const Json json = Json::parse(said.out);
  EXPECT_EQ(json.at("objective"), "time_to_accuracy");
  ASSERT_EQ(json.at("rows").size(), 2U);
  const Json& first = json.at("rows")[0];
  EXPECT_EQ(first.at("strategy"), "rare");  // more steps, each a third as long
  EXPECT_GT(first.at("steps"), json.at("rows")[1].at("steps"));
  EXPECT_GT(first.at("speedup"), 1);
  EXPECT_GT(first.at("chance_over_next"), 0.5);
  EXPECT_TRUE(first.at("pays"));
  EXPECT_EQ(json.at("never")[0].at("strategy"), "wild");
  EXPECT_EQ(json.at("no_curve"), Json::array({"untrained"}));
}

TEST(ObjectiveOption, IsPrintedInWordsToo) {
  const Said said = say(asked("run"));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_TRUE(test::says(said.out, "'rare' is first at an accuracy of 0.9", "it is faster below",
                         "never", "no curve", "more steps"));
}

// What an import minded is said by every verb that answers from it.
TEST(ObjectiveOption, NotesOfTheScenarioReachTheAnswer) {
  for (const char* verb : {"run", "tune"}) {
    for (const bool objective : {true, false}) {
      std::vector<std::string> words =
          objective ? asked(verb) : std::vector<std::string>{verb, job_file()};
      words.insert(words.end(), {"--set", "notes=[\"one rank only was read\"]"});
      if (!objective || verb == std::string("tune")) words.emplace_back("--verbose");
      const Said table = say(words);
      ASSERT_EQ(table.code, 0) << table.err;
      EXPECT_TRUE(test::says(table.out, "one rank only was read")) << verb << objective;
      words.insert(words.end(), {"--format", "json"});
      const Json warnings = Json::parse(say(words).out).at("remarks");
      EXPECT_NE(std::find(warnings.begin(), warnings.end(), "one rank only was read"),
                warnings.end())
          << verb << objective;
    }
  }
}

TEST(ObjectiveOption, IsPrintedNextToMeasurements) {
  const Said said = say(asked("run", {"--measured", curves("seconds", 0.03)}));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_TRUE(test::says(said.out, "measured", "by the clock 'dense' was first"));
}

TEST(ObjectiveOption, TuneSearchesEachTrainingAndWritesTheBest) {
  const std::string file = scratch().path("objective_best.py");
  const std::string svg = scratch().path("objective.svg");
  const Said said = say(asked("tune", {"--emit", "pytorch", "--python", file, "--svg", svg}));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_TRUE(test::says(test::text_of(file), "\"local_sgd\": {\"period\": 4, \"begin_step\": 1}"));
  EXPECT_TRUE(test::says(test::text_of(svg), "accuracy over the time of the training"));
}

TEST(ObjectiveOption, SaysWhatIsMissing) {
  const Said target = say({"run", job_file(), "--target", "1"});
  EXPECT_TRUE(test::refused(target, "need --objective"));
  EXPECT_TRUE(test::refused(say({"tune", job_file(), "--objective", "time_to_loss"}),
                            "needs --target and --curves"));
  EXPECT_TRUE(test::refused(say({"run", job_file(), "--objective", "time_to_loss", "--target", "1",
                                 "--curves", "/no/file.csv"}),
                            "/no/file.csv"));
  EXPECT_TRUE(test::refused(say(asked("run", {"--trace", "/tmp/t.json"})),
                            "--trace is not available with --objective"));
}

// Without an objective curves tell where the trainings of the rows end.
TEST(ObjectiveOption, TuneTellsWhereTrainingsEnd) {
  const Said said = say({"tune", job_file(), "--curves", curves(), "--format", "json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json answer = Json::parse(said.out);
  bool averaged = false, unknown = false;
  for (const Json& row : answer.at("alternatives")) {
    if (row["training"] == "same") {
      EXPECT_EQ(row["outcome"]["end"], row["outcome"]["baseline_end"]) << row;
    } else if (row["strategy"].contains("local_sgd")) {
      averaged = true;
      EXPECT_LT(row["outcome"]["end"], row["outcome"]["baseline_end"]) << row;
    } else {
      unknown |= !row.contains("outcome");
    }
  }
  EXPECT_TRUE(averaged && unknown) << said.out;
  EXPECT_TRUE(test::refused(say({"tune", job_file(), "--curves",
                                 job_text("other.csv", "strategy,step,loss\nothers,1,2\n")}),
                            "no row has a curve"));
}

}  // namespace
}  // namespace syncline::cli
