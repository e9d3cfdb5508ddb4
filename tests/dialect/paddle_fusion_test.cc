// Paddle's build strategy on a workload with operators: the documents' whole log in one reading,
// and the way back.
#include <gtest/gtest.h>

#include "core/plan.h"
#include "core/plan/compute_fusion.h"
#include "formats/dialect/write.h"
#include "formats/input/document.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

Scenario fused_scenario(const std::string& operators, const std::string& config) {
  return input::parse_scenario(input::document_from_text(
      "s.json", R"({"name": "s", "workload": {"name": "w", "batch": 32, "operators": )" +
                    operators + R"(}, "cluster": {"name": "c", "nodes": 1, "gpus_per_node": 8,
      "intra": {"latency_us": 4, "bandwidth_gbps": 1000}, "device": {"tflops": 15.7,
      "half_tflops": 125, "memory_gbytes_per_s": 720, "launch_us": 5, "kernel_gap_us": 1}},
      "strategies": [{"name": "mine", "dialect": "paddle", "config": )" +
                    config + "}]}"));
}

bool notes_say(const Scenario& scenario, const std::string& text) {
  return test::any_contains(scenario.strategies.front().notes, text);
}

std::size_t collectives(const Scenario& scenario) {
  return plan::make_plan(scenario.workload, scenario.cluster, scenario.strategies.front())
      .buckets.size();
}

// The documents' example, switch by switch, and what its log says: "fuse_broadcast_ops only works
// under Reduce mode", twice "detected 16 subgraphs", "Find momentum operators : 161, and 161 for
// dense gradients", "the number of all_reduce ops is 6".
TEST(PaddleFusion, TheDocumentsLogLineByLine) {
  const Scenario scenario = fused_scenario(R"({"architecture": "resnet50", "classes": 10})", R"({
      "build_strategy": {"fuse_elewise_add_act_ops": true, "fuse_bn_act_ops": true,
        "fuse_relu_depthwise_conv": true, "fuse_broadcast_ops": true,
        "fuse_all_optimizer_ops": true},
      "fuse_grad_size_in_MB": 16, "fuse_all_reduce_ops": true})");
  EXPECT_TRUE(notes_say(scenario, "fuse_broadcast_ops is turned off: it only works under Reduce"));
  EXPECT_TRUE(notes_say(scenario,
                        "fuse_elewise_add_act_ops: detected 16 subgraphs forward and 16 backward"));
  EXPECT_TRUE(notes_say(scenario, "found 161 momentum operators, and 161 for dense gradients"));
  EXPECT_TRUE(notes_say(scenario, "fuse_bn_act_ops matches nothing here"));
  EXPECT_TRUE(notes_say(scenario, "fuse_relu_depthwise_conv matches nothing here"));
  // On by default and without a match: not a word.
  EXPECT_FALSE(notes_say(scenario, "fuse_bn_add_act_ops"));
  EXPECT_EQ(collectives(scenario), 6u);
}

// Mixed precision: 161 gradients in 8 and 10 all-reduces, by dtype; no optimizer fusion.
TEST(PaddleFusion, MixedPrecision) {
  const std::string amp =
      R"({"architecture": "resnet50", "classes": 10, "dtype": "fp16", "layout": "NHWC"})";
  EXPECT_EQ(collectives(fused_scenario(amp, "{}")), 8u);
  EXPECT_EQ(collectives(fused_scenario(amp, R"({"fuse_grad_size_in_MB": 16})")), 10u);
  const Scenario fused = fused_scenario(amp, R"({"build_strategy": {"fuse_bn_act_ops": true,
      "fuse_all_optimizer_ops": true}})");
  EXPECT_TRUE(notes_say(fused, "fuse_bn_act_ops: detected 33 subgraphs forward and 33 backward"));
  EXPECT_TRUE(
      notes_say(fused, "fuse_bn_add_act_ops: detected 16 subgraphs forward and 16 backward"));
  EXPECT_TRUE(notes_say(fused, "fuse_all_optimizer_ops fuses nothing"));
  EXPECT_EQ(fused.strategies.front().update, Strategy::Update::kPerBucket);
}

TEST(PaddleFusion, ComesBack) {
  for (const char* config :
       {"{}", R"({"build_strategy": {"fuse_bn_add_act_ops": false}})",
        R"({"build_strategy": {"fuse_elewise_add_act_ops": true, "fuse_bn_add_act_ops": false}})",
        R"({"build_strategy": {"fuse_bn_act_ops": true, "fuse_gemm_epilogue": true}})"}) {
    const Scenario scenario = fused_scenario(
        R"({"architecture": "resnet50", "dtype": "fp16", "layout": "NHWC"})", config);
    const auto result = write_config(*find_dialect("paddle"), scenario.strategies.front(),
                                     scenario.workload, scenario.cluster);
    ASSERT_TRUE(result.has_value());
    EXPECT_TRUE(result->exact) << config << ": " << result->difference;
    EXPECT_EQ(result->strategy.compute_fusion.fuse_bn_add_act_ops,
              scenario.strategies.front().compute_fusion.fuse_bn_add_act_ops);
  }
}

// DDP launches what the model's code says.
TEST(PaddleFusion, OtherFrameworksCannotSayIt) {
  const Scenario scenario =
      fused_scenario(R"({"architecture": "resnet50"})",
                     R"({"build_strategy": {"fuse_elewise_add_act_ops": true}})");
  Strategy strategy = scenario.strategies.front();
  strategy.fusion = Fusion{};
  strategy.fusion.rule = Fusion::Rule::kOne;
  const auto result =
      write_config(*find_dialect("mindspore"), strategy, scenario.workload, scenario.cluster);
  ASSERT_TRUE(result.has_value());
  EXPECT_FALSE(result->exact);
  EXPECT_EQ(result->difference, "it fuses other operators of the computation");
}

}  // namespace
}  // namespace syncline::dialect
