// Advice is only worth its cost: what it promises must come true when the change is made.

#include "studies/explain/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "formats/dialect/changes.h"
#include "formats/input/document.h"
#include "studies/warnings/warnings.h"
#include "tests/support/full_scenario.h"
#include "tests/support/studies.h"
#include "tests/support/text.h"

namespace syncline::measure {
namespace {

using test::contains;
using test::step_time;

const char* const kSlow = R"("nodes": 4, "gpus_per_node": 8,
    "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
    "inter": {"latency_us": 20, "bandwidth_gbps": 10}, "collective_overhead_us": 10)";

Scenario scenario_by(const std::string& strategy = R"({"name": "s"})",
                     const std::string& cluster = kSlow) {
  return input::parse_scenario(input::document_from_text(
      "advice", R"({"name": "advice", "workload": ")" SYNCLINE_SOURCE_DIR
                R"(/scenarios/workloads/resnet50_v100.json", "cluster": {"name": "c", )" +
                    cluster + R"(}, "strategies": [)" + strategy + "]}"));
}

std::vector<Advice> advice_for(const Scenario& scenario, const Json* written = nullptr) {
  const auto executor = run::make_model_executor({scenario.cluster, {}, 1});
  collective::CostCache cache(scenario.cluster);
  return advise(scenario, scenario.strategies.front(), *executor, cache, 0.5, written);
}

TEST(Advice, KeepsItsPromise) {
  const Scenario scenario = scenario_by(R"({"name": "s", "overlap": false})");
  const Seconds before = step_time(scenario, scenario.strategies.front());
  const auto advice = advice_for(scenario);
  ASSERT_GE(advice.size(), 4U);
  for (const auto& item : advice) {
    const Seconds after = step_time(scenario, item.strategy);
    EXPECT_DOUBLE_EQ(after, item.metrics.step_time) << item.change;
    EXPECT_DOUBLE_EQ(100 * (1 - after / before), item.gain_percent()) << item.change;
    EXPECT_GE(item.gain_percent(), 0.5) << item.change;
  }
}

TEST(Advice, ComesBestFirstAndOnceAKind) {
  const auto advice = advice_for(scenario_by());
  ASSERT_FALSE(advice.empty());
  int fusion = 0;
  for (std::size_t i = 0; i < advice.size(); ++i) {
    EXPECT_LE(advice[i].gain_percent(), advice[i == 0 ? 0 : i - 1].gain_percent());
    fusion += contains(advice[i].set_with, "\"fusion\":");
  }
  EXPECT_LE(fusion, 1);
}

// Without start-up times single gradients are the best fusion. They are summed as wide as before:
// a change that is told to train the same does.
TEST(Advice, SingleGradientsAreSummedAsWide) {
  const std::string cluster = R"("nodes": 2, "gpus_per_node": 1, "library": "links",
      "inter": {"latency_us": 0.001, "bandwidth_gbps": 100})";
  Scenario scenario =
      scenario_by(R"({"name": "s", "fusion": {"rule": "one", "cast": "fp32"}})", cluster);
  for (Tensor& tensor : scenario.workload.tensors) tensor.dtype = DType::kBf16;
  bool single = false;
  for (const Advice& one : advice_for(scenario)) {
    if (one.training != TrainingChange::kSame) continue;
    EXPECT_TRUE(one.strategy.fusion.sums_in_fp32()) << one.change;
    single |= one.strategy.fusion.rule == Fusion::Rule::kNone;
  }
  EXPECT_TRUE(single);
}

TEST(Advice, NamesWhatChangesTheTraining) {
  bool compression = false;
  for (const auto& item : advice_for(scenario_by())) {
    const bool lossy = !item.strategy.compression.codec.empty() || item.strategy.local_sgd.enabled;
    EXPECT_EQ(item.training != TrainingChange::kSame, lossy) << item.change;
    compression |= lossy;
  }
  EXPECT_TRUE(compression) << "at 10 Gbit/s compression pays";
}

// Half of the ranks at half the speed: twice the steps for the others, with the same mean.
TEST(Advice, FasterRanksTakeMoreSteps) {
  const std::string cluster = std::string(kSlow) + R"(, "speeds": [1, 0.5])";
  const char* strategy = R"({"name": "s", "fusion": {"rule": "one"},
      "local_sgd": {"period": 30, "outer": {"optimizer": "nesterov"}}})";
  const Scenario scenario = scenario_by(strategy, cluster);
  const auto all = advice_for(scenario);
  const auto steps = std::ranges::find_if(
      all, [](const Advice& one) { return !one.strategy.local_sgd.periods.empty(); });
  ASSERT_NE(steps, all.end());
  EXPECT_EQ(steps->strategy.local_sgd.periods, (std::vector<std::int64_t>{40, 20}));
  EXPECT_TRUE(contains(steps->set_with, "\"periods\": [40, 20]")) << steps->set_with;
  EXPECT_TRUE(test::any_contains(warnings_of(scenario),
                                 "ranks wait for the slowest ones: on the mean rank 25 %"));
}

TEST(Training, IsJudgedAgainstTheBase) {
  Strategy plain, half, sparse, sparser, rare;
  half.compression.codec = "fp16";
  sparse.compression.codec = sparser.compression.codec = "dgc";
  sparser.compression.sparsity = {0.9999};
  rare.local_sgd.enabled = true;
  for (const Strategy* one : {&plain, &half, &sparse, &rare}) {
    EXPECT_EQ(training_beside(*one, *one), TrainingChange::kSame);
    EXPECT_EQ(training_beside(plain, *one), TrainingChange::kSame) << "nothing is lost";
  }
  EXPECT_EQ(training_beside(half, plain), TrainingChange::kRounded);
  for (const Strategy* one : {&sparse, &rare}) {
    EXPECT_EQ(training_beside(*one, plain), TrainingChange::kChanged);
    EXPECT_EQ(training_beside(*one, half), TrainingChange::kChanged);
  }
  EXPECT_EQ(training_beside(sparser, sparse), TrainingChange::kChanged);
  Strategy wide = plain, wide_sparse = sparse;
  wide.fusion.sum_format = wide_sparse.fusion.sum_format = DType::kFp32;
  EXPECT_EQ(training_beside(plain, wide), TrainingChange::kRounded) << "sums in 16 bits";
  EXPECT_EQ(training_beside(wide, plain), TrainingChange::kSame);
  EXPECT_EQ(training_beside(sparse, wide_sparse), TrainingChange::kRounded);
  EXPECT_EQ(training_beside(sparse, wide), TrainingChange::kChanged);
  Strategy narrow = plain;
  narrow.fusion.sum_format = DType::kBf16;
  EXPECT_EQ(training_beside(narrow, plain), TrainingChange::kRounded) << "fp32 in 16 bits";
  EXPECT_EQ(training_beside(narrow, narrow), TrainingChange::kSame);
  EXPECT_EQ(training_beside(plain, narrow), TrainingChange::kSame);
}

// ---- in a dialect's own keys --------------------------------------------------------------------

std::vector<Advice> told_in(const std::string& dialect, const std::string& config) {
  const std::string written =
      R"({"name": "s", "dialect": ")" + dialect + R"(", "config": )" + config + "}";
  const Json json = Json::parse(written);
  return advice_for(scenario_by(written), &json);
}

std::string all_of(const std::vector<Advice>& told) {
  std::string text;
  for (const auto& item : told) text += item.change + ": " + item.set_with + "\n";
  return text;
}

TEST(AdviceInADialect, UsesTheFrameworksKeys) {
  for (const auto& [dialect, config, part] :
       std::vector<std::tuple<const char*, const char*, const char*>>{
           {"paddle", R"({"fuse_grad_size_in_MB": 128})", "fuse_grad_size_in_MB: 128 -> "},
           {"paddle", "{}", "localsgd: false (default) -> true, localsgd_configs.k_steps: 1"},
           {"paddle", "{}",
            "use_hierarchical_allreduce: false (default) -> true, "
            "hierarchical_allreduce_inter_nranks: 1 (default) -> 8"},
           {"paddle", R"({"localsgd": true})", "localsgd_configs.k_steps: 1 (default) -> 4"},
           {"pytorch", R"({"bucket_cap_mb": 1000})", "bucket_cap_mb: 1000 -> "},
           {"pytorch", "{}", "comm_hook: allreduce_hook (default) -> fp16_compress_hook"},
           {"paddle_dygraph", R"({"fuse_grad_size_in_MB": 1000})",
            "fuse_grad_size_in_MB: 1000 -> "},
           {"mindspore", "{}", "comm_fusion.allreduce.mode: not given -> size"},
           {"horovod", "{}", "compression: none (default) -> fp16"}}) {
    const std::string text = all_of(told_in(dialect, config));
    EXPECT_TRUE(contains(text, part)) << dialect << " " << config << ":\n" << text;
  }
}

// What is told in the framework's keys is what the framework does with them.
TEST(AdviceInADialect, ComesTrueWhenItIsPastedIn) {
  const auto told = told_in("paddle", R"({"fuse_grad_size_in_MB": 128})");
  const Advice* fusion = nullptr;
  for (const auto& item : told) {
    if (item.set_with.starts_with("fuse_grad_size_in_MB: 128 -> ")) fusion = &item;
  }
  ASSERT_NE(fusion, nullptr) << all_of(told);
  const int size =
      std::stoi(fusion->set_with.substr(std::string("fuse_grad_size_in_MB: 128 -> ").size()));
  Json config{{"fuse_grad_size_in_MB", size}};
  if (contains(fusion->set_with, "_TFLOPS")) {
    config["_fuse_grad_size_in_TFLOPS"] = 100000.0;
  }
  const Scenario again =
      scenario_by(R"({"name": "s", "dialect": "paddle", "config": )" + config.dump() + "}");
  EXPECT_DOUBLE_EQ(step_time(again, again.strategies.front()), fusion->metrics.step_time);
}

TEST(AdviceInADialect, SaysIfTheFrameworkCannotExpressIt) {
  // DDP knows no hierarchy of its own; a file of ours may bring it.
  const auto told = told_in("pytorch", "{}");
  int unsaid = 0;
  for (const auto& item : told) {
    const bool ours =
        contains(item.change, "in two levels") || contains(item.change, "all-reduce by ");
    const bool said_so =
        item.set_with.starts_with("cannot be written in pytorch, in a scenario \"") ||
        item.set_with == "the file of syncline tune --emit pytorch --python";
    EXPECT_LE(ours, said_so) << item.change;
    EXPECT_FALSE(item.set_with.empty()) << item.change;
    unsaid += said_so;
  }
  EXPECT_GE(unsaid, 1) << all_of(told);
  // Our own strategies need no such words.
  for (const auto& item : advice_for(scenario_by())) {
    EXPECT_FALSE(contains(item.set_with, "cannot be")) << item.change;
    EXPECT_FALSE(item.set_with.empty()) << item.change;
  }
}

TEST(AdviceInADialect, NeverProposesRefusedOrEqualConfigurations) {
  // LocalSGD and dgc exclude each other; fusion has no effect under either.
  for (const char* config : {R"({"localsgd": true})", R"({"dgc": true})"}) {
    const auto told = told_in("paddle", config);
    for (const auto& item : told) {
      EXPECT_FALSE(item.strategy.local_sgd.enabled && !item.strategy.compression.codec.empty())
          << item.change;
      EXPECT_GE(item.gain_percent(), 0.5);
      EXPECT_FALSE(item.set_with.starts_with("fuse_grad_size_in_MB")) << config << item.change;
    }
  }
}

// What is advised could be written into the scenario: a tree neither scatters nor gathers, so
// neither levels that do, nor what is averaged between groups, is advised beside one.
TEST(Advice, IsNoScenarioThatWouldBeRefused) {
  const Json horovod{{"dialect", "horovod"},
                     {"algorithm", "double_binary_tree"},
                     {"config", {{"HOROVOD_CYCLE_TIME", 1}}}};
  Json strategy = horovod;
  strategy["name"] = "s";
  for (const auto& item : advice_for(scenario_by(strategy.dump()), &horovod)) {
    EXPECT_FALSE(item.set_with.starts_with("HOROVOD_HIERARCHICAL")) << item.change;
  }
  const Scenario outer = scenario_by(R"({"name": "s", "algorithm": "ring", "local_sgd":
      {"period": 6, "subgroup": 8, "outer": {"optimizer": "sgd"}}})");
  for (const auto& item : advice_for(outer)) {
    EXPECT_FALSE(contains(item.change, "tree") || contains(item.change, "to_one")) << item.change;
  }
}

TEST(ChangeText, NamesEachChangedKeyWithItsOldValue) {
  const Json config{{"fuse_grad_size_in_MB", 16}, {"dgc", true}};
  const std::pair<Json, const char*> changes[] = {
      {{{"fuse_grad_size_in_MB", 8}}, "fuse_grad_size_in_MB: 16 -> 8"},
      {{{"dgc", true}}, ""},
      {{{"nccl_comm_num", 2}, {"sync_nccl_allreduce", false}},
       "nccl_comm_num: 1 (default) -> 2, sync_nccl_allreduce: true (default) -> false"},
      {{{"nccl_comm_num", 1}}, ""}};  // the default already
  for (const auto& [patch, text] : changes) {
    EXPECT_EQ(dialect::change_text(*dialect::find_dialect("paddle"), config, patch), text);
  }
  EXPECT_EQ(dialect::change_text(*dialect::find_dialect("mindspore"), {},
                                 {{"comm_fusion", {{"allreduce", {{"mode", "size"}}}}}}),
            "comm_fusion.allreduce.mode: not given -> size");
}

TEST(Advice, IsSilentIfThereIsNoGain) {
  for (const char* cluster : {R"("nodes": 1, "gpus_per_node": 1)",
                              R"("nodes": 2, "gpus_per_node": 1,
                                 "inter": {"latency_us": 1, "bandwidth_gbps": 100000})"}) {
    EXPECT_TRUE(advice_for(scenario_by(R"({"name": "s"})", cluster)).empty()) << cluster;
  }
}

// Operators tell what fusing them would gain, on a single GPU too.
TEST(Advice, FusesOperatorsIfThatIsFaster) {
  const Scenario scenario = test::parsed(Json::parse(R"({"name": "advice",
      "workload": {"name": "w", "batch": 64, "operators": {
        "architecture": "resnet50", "dtype": "fp16", "layout": "NHWC"}},
      "cluster": {"name": "c", "nodes": 1, "gpus_per_node": 1, "device": {
        "tflops": 15.7, "half_tflops": 125, "memory_gbytes_per_s": 720}},
      "strategies": [{"name": "s"}]})"));
  const auto advice = advice_for(scenario);
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].change, "fuse operators");
  EXPECT_TRUE(contains(advice[0].set_with, "fuse_bn_add_act_ops")) << advice[0].set_with;
  EXPECT_DOUBLE_EQ(step_time(scenario, advice[0].strategy), advice[0].metrics.step_time);
  EXPECT_EQ(advice[0].training, TrainingChange::kSame);
}

}  // namespace
}  // namespace syncline::measure
