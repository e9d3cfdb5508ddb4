// What an answer will take: nothing is said of what is quick, everything of what is not.
#include "core/measure/estimate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/input/document.h"
#include "core/input/read_scenario.h"

namespace syncline::measure {
namespace {

Scenario scenario_with(const std::string& path, const Json& value, const std::string& also = "",
                       const Json& as = {}) {
  input::Document document = input::document_from_text("small", R"({
      "name": "small", "workload": {"name": "w", "forward_ms": 5, "tensors": [
        {"name": "a", "shape": [1000, 1000], "backward_us": 100},
        {"name": "b", "shape": [1000], "backward_us": 100}]},
      "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 8,
        "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
        "inter": {"latency_us": 8, "bandwidth_gbps": 100}},
      "simulation": {}, "sweep": {"cluster.nodes": [4]},
      "strategies": [{"name": "s", "algorithm": "ring"}]})");
  if (!path.empty()) input::set_key(document, path, value);
  if (!also.empty()) input::set_key(document, also, as);
  return input::parse_scenario(document);
}

TEST(Estimate, NoShippedScenarioIsHeavy) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SYNCLINE_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".json" || entry.path().filename() == "schema.json") continue;
    const Scenario scenario = input::parse_scenario(input::read_document(entry.path().string()));
    for (const Answer answer : {Answer::kCheck, Answer::kPlan, Answer::kExplain, Answer::kRun,
                                Answer::kSimulate, Answer::kTune}) {
      EXPECT_FALSE(is_heavy(estimate_of(scenario, answer))) << entry.path();
    }
    ++seen;
  }
  EXPECT_GT(seen, 5);
}

// Each once took minutes or more than 4 GB without a word.
TEST(Estimate, WhatGrowsIsSeenToGrow) {
  const Scenario ranks =
      scenario_with("cluster.nodes", 131072, "strategies.s.algorithm", "double_binary_tree");
  EXPECT_TRUE(is_heavy(estimate_of(ranks, Answer::kRun)));
  EXPECT_TRUE(is_heavy(estimate_of(ranks, Answer::kTune)));
  EXPECT_FALSE(is_heavy(estimate_of(ranks, Answer::kPlan)));

  const Scenario period = scenario_with("strategies.s.local_sgd", {{"period", 1000000}});
  EXPECT_GT(estimate_of(period, Answer::kPlan).bytes, 1e9);
  EXPECT_TRUE(is_heavy(estimate_of(period, Answer::kRun)));

  const Scenario steps =
      scenario_with("cluster.nodes", 2048, "simulation", {{"grain", "step"}, {"fold", false}});
  EXPECT_GT(estimate_of(steps, Answer::kSimulate).bytes, 4e9);
  EXPECT_FALSE(is_heavy(estimate_of(steps, Answer::kRun)));

  Json values = Json::array();
  for (int i = 0; i < 1000; ++i) values.push_back(10 + i);
  const Scenario points = scenario_with("sweep", {{"cluster.inter.bandwidth_gbps", values},
                                                  {"cluster.intra.bandwidth_gbps", values}});
  EXPECT_FALSE(is_heavy(estimate_of(points, Answer::kCheck)));  // half a minute
  EXPECT_TRUE(is_heavy(estimate_of(points, Answer::kRunStreamed)));
  EXPECT_GT(estimate_of(points, Answer::kRun).bytes, 1e9);
  // Rows that are handed on as they come are kept nowhere.
  EXPECT_LT(estimate_of(points, Answer::kRunStreamed).bytes, 1e8);
  EXPECT_EQ(estimate_of(points, Answer::kRunStreamed).time, estimate_of(points, Answer::kRun).time);
}

TEST(Estimate, TwiceTheWorkIsTwiceTheTime) {
  Json few = Json::array();
  Json many = Json::array();
  for (int i = 0; i < 500; ++i) (i % 2 == 0 ? few : many).push_back(10 + i);
  for (int i = 0; i < 250; ++i) many.push_back(1000 + i);
  for (const Answer answer : {Answer::kCheck, Answer::kRun}) {
    const auto one =
        estimate_of(scenario_with("sweep", {{"cluster.inter.bandwidth_gbps", few}}), answer);
    const auto two =
        estimate_of(scenario_with("sweep", {{"cluster.inter.bandwidth_gbps", many}}), answer);
    EXPECT_DOUBLE_EQ(two.time, 2 * one.time);
  }
}

}  // namespace
}  // namespace syncline::measure
