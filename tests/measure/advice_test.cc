// Advice is only worth its price: what it promises must come true when the change is made.

#include "core/measure/advice.h"

#include <gtest/gtest.h>

#include "core/measure/study.h"
#include "core/scenario/document.h"

namespace syncline {
namespace {

Scenario scenario_of(const std::string& cluster, const std::string& strategy) {
  return parse_scenario(document_from_text(
      "advice", R"({"name": "advice", "workload": ")" SYNCLINE_SOURCE_DIR
                R"(/scenarios/workloads/resnet50_v100.json", "cluster": {"name": "c", )" +
                    cluster + R"(}, "strategies": [)" + strategy + "]}"));
}

const char* const kSlow = R"("nodes": 4, "gpus_per_node": 8,
    "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
    "inter": {"latency_us": 20, "bandwidth_gbps": 10}, "collective_overhead_us": 10)";

std::vector<Advice> advice_for(const Scenario& scenario, double least_percent) {
  const auto executor = make_model_executor({scenario.cluster, {}, 1});
  PriceBook book(scenario.cluster);
  return advise(scenario, scenario.strategies.front(), *executor, book, least_percent);
}

Seconds step_time(const Scenario& scenario, const Strategy& strategy) {
  const auto executor = make_model_executor({scenario.cluster, {}, 1});
  PriceBook book(scenario.cluster);
  return price_strategy(scenario, strategy, *executor, book).metrics.step_time;
}

TEST(Advice, KeepsItsPromise) {
  const Scenario scenario = scenario_of(kSlow, R"({"name": "s", "overlap": false})");
  const Seconds before = step_time(scenario, scenario.strategies.front());
  const auto advice = advice_for(scenario, 0.5);
  ASSERT_GE(advice.size(), 4U);
  for (const auto& item : advice) {
    const Seconds after = step_time(scenario, item.strategy);
    EXPECT_DOUBLE_EQ(after, item.step_time) << item.change;
    EXPECT_DOUBLE_EQ(100 * (1 - after / before), item.gain_percent) << item.change;
    EXPECT_GE(item.gain_percent, 0.5) << item.change;
  }
}

TEST(Advice, ComesBestFirstAndOnceAKind) {
  const auto advice = advice_for(scenario_of(kSlow, R"({"name": "s"})"), 0.5);
  ASSERT_FALSE(advice.empty());
  int fusion = 0;
  for (std::size_t i = 0; i < advice.size(); ++i) {
    EXPECT_LE(advice[i].gain_percent, advice[i == 0 ? 0 : i - 1].gain_percent);
    fusion += advice[i].change.find("fusion:") != std::string::npos;
  }
  EXPECT_LE(fusion, 1);
}

TEST(Advice, NamesWhatChangesTheTraining) {
  bool compression = false;
  for (const auto& item : advice_for(scenario_of(kSlow, R"({"name": "s"})"), 0.5)) {
    const bool lossy = !item.strategy.compression.codec.empty() || item.strategy.local_sgd.enabled;
    EXPECT_EQ(item.changes_training, lossy) << item.change;
    compression |= lossy;
  }
  EXPECT_TRUE(compression) << "at 10 Gbit/s compression pays";
}

TEST(Advice, IsSilentWhereNothingIsToBeGained) {
  const Scenario alone = scenario_of(R"("nodes": 1, "gpus_per_node": 1)", R"({"name": "s"})");
  EXPECT_TRUE(advice_for(alone, 0.5).empty());
  const Scenario fast = scenario_of(R"("nodes": 2, "gpus_per_node": 1,
      "inter": {"latency_us": 1, "bandwidth_gbps": 100000})",
                                    R"({"name": "s"})");
  EXPECT_TRUE(advice_for(fast, 0.5).empty());
}

// Operators tell what fusing them would gain, on a single GPU too.
TEST(Advice, FusesOperatorsWhereThatPays) {
  const Scenario scenario = parse_scenario(document_from_text(
      "advice", R"({"name": "advice", "workload": {"name": "w", "batch": 64, "operators":
      {"architecture": "resnet50", "dtype": "fp16", "layout": "NHWC"}}, "cluster": {"name": "c",
      "nodes": 1, "gpus_per_node": 1, "device": {"tflops": 15.7, "half_tflops": 125,
      "memory_gbytes_per_s": 720}}, "strategies": [{"name": "s"}]})"));
  const auto advice = advice_for(scenario, 0.5);
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].change, "fuse operators (compute_fusion: fuse_bn_add_act_ops)");
  EXPECT_DOUBLE_EQ(step_time(scenario, advice[0].strategy), advice[0].step_time);
  EXPECT_FALSE(advice[0].changes_training);
}

}  // namespace
}  // namespace syncline
