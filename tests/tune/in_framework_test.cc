// The best in a framework's own keys: it can be set, takes what is said, and nothing is shorter.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/dialect/dialect.h"
#include "formats/dialect/write.h"
#include "formats/input/document.h"
#include "studies/tune/alternatives.h"
#include "studies/tune/tuning.h"
#include "tests/support/tunings.h"

namespace syncline::tune {
namespace {

using measure::TrainingChange;

// A small job on four nodes of four GPUs, slow between them, by one strategy.
input::Document job_by(Json strategy) {
  strategy["name"] = "own";
  Json root = test::small_search("{}");
  root.erase("search");
  root["strategies"] = Json::array({strategy});
  root["cluster"]["intra"]["bandwidth_gbps"] = 800;
  return input::document_from_text("in_framework", root.dump());
}

Tuning tuned(const input::Document& document, const std::string& emit, bool by_file = false,
             const std::string& take = "") {
  TuneOptions options;
  options.budget = 200;
  options.by_file = by_file;
  options.take = take;
  return test::tuning_of(document, options, emit.empty() ? nullptr : dialect::find_dialect(emit));
}

const std::vector<std::string>& strategies() {
  static const std::vector<std::string> list{
      R"({})",
      R"({"dialect": "pytorch", "config": {}})",
      R"({"dialect": "deepspeed", "config": {"zero_optimization": {"stage": 0}}})",
      R"({"dialect": "deepspeed", "config": {"zero_optimization": {"stage": 2}}})",
      R"({"dialect": "deepspeed", "config": {"zero_optimization": {"stage": 3}, "steps_per_print": 7}})",
      R"({"dialect": "fsdp", "config": {"version": 1}})",
      R"({"dialect": "fsdp", "config": {"version": 2, "units": ["l0", "l1", "l2"]}})",
      R"({"dialect": "fsdp", "config": {"version": 2, "mesh": [2, 8]}})",
      R"({"dialect": "megatron", "config": {"use-distributed-optimizer": true}})",
      R"({"dialect": "paddle", "config": {}})",
      R"({"dialect": "horovod", "config": {}})",
      R"({"dialect": "mindspore", "config": {}})"};
  return list;
}

TEST(InFramework, TheBestIsTheLeastOfItsTableAndCanBeSet) {
  for (const std::string& text : strategies()) {
    const Json strategy = Json::parse(text);
    const std::string own = strategy.value("dialect", "");
    for (const std::string& emit : dialect::written_dialect_names()) {
      // About averaging between replicas, which none of these does.
      if (emit == "torchft" || emit == "diloco") continue;
      if (!own.empty() && own != emit && emit != "deepspeed" && emit != "fsdp") continue;
      SCOPED_TRACE(text + " --emit " + emit);
      const Tuning tuning = tuned(job_by(strategy), emit);
      const Ranked& best = tuning.tuned.winner();
      const TrainingChange training =
          measure::training_beside(best.strategy, tuning.tuned.baseline.strategy);
      for (const Alternative& row : tuning.alternatives) {
        if (row.training != training || !row.memory.fits()) continue;
        // What only a file of ours does stands in the table, below what the framework can be told.
        const auto& outside = tuning.tuned.outside;
        if (outside && outside->strategy.name == row.strategy.name) {
          EXPECT_FALSE(row.written);
          continue;
        }
        EXPECT_LE(best.metrics.step_time, row.metrics.step_time * (1 + 2e-3)) << row.strategy.name;
      }
      ASSERT_TRUE(tuning.emitted);
      // What is emitted takes what is said of it.
      const Scenario& scenario = tuning.scenario;
      const Strategy read =
          dialect::reading_of(*dialect::find_dialect(emit), tuning.emitted->config,
                              scenario.workload, scenario.cluster,
                              {.algorithm = tuning.emitted->algorithm})
              .strategy;
      Evaluator model(scenario);
      EXPECT_NEAR(model.step_time(read), tuning.emitted->step_time, 1e-9);
      const auto& refusal = dialect::find_dialect(emit)->apply_refusal;
      const bool applied =
          refusal != nullptr && refusal(best.strategy, scenario.workload, scenario.cluster).empty();
      const bool slower = tuning.emitted->step_time > tuning.tuned.baseline.metrics.step_time;
      if (!applied && !slower) {
        EXPECT_TRUE(tuning.emitted->exact);
        EXPECT_NEAR(tuning.emitted->step_time, best.metrics.step_time,
                    1e-9 * best.metrics.step_time);
      }
      if (own == emit) {
        EXPECT_FALSE(slower) << tuning.emitted->config;
      }
    }
  }
}

// Over few fast links inside nodes, and slow ones across.
TEST(InFramework, KeysOfShardingAreSearched) {
  const Tuning fsdp =
      tuned(job_by(Json::parse(R"({"dialect": "fsdp", "config": {"version": 2}})")), "fsdp");
  EXPECT_TRUE(fsdp.emitted->config.contains("mesh") ||
              fsdp.emitted->config.value("reshard_after_forward", Json(true)) != true)
      << fsdp.emitted->config;
  const Tuning zero = tuned(
      job_by(Json::parse(
          R"({"dialect": "deepspeed", "config": {"bf16": {"enabled": false}, "zero_optimization": {"stage": 3}}})")),
      "deepspeed");
  EXPECT_LT(zero.emitted->step_time, zero.tuned.baseline.metrics.step_time);
  EXPECT_TRUE(zero.emitted->config.contains("bf16")) << "the job's own keys stay";
  // A job without --emit is told in its own framework's words.
  const Tuning plain = tuned(
      job_by(Json::parse(
          R"({"dialect": "deepspeed", "config": {"zero_optimization": {"stage": 2, "overlap_comm": false}}})")),
      "");
  EXPECT_LT(plain.tuned.winner().metrics.step_time, plain.tuned.baseline.metrics.step_time);
}

// Gradients in bf16 that a framework sums in fp32: no candidate sums them in bf16.
TEST(InFramework, SumsStayAsWideAsTheJobHasThem) {
  for (
      const char* text :
      {R"({"dialect": "megatron", "config": {"bf16": true, "accumulate-allreduce-grads-in-fp32": true,
                                             "use-distributed-optimizer": true}})",
       R"({"dialect": "fsdp", "config": {"version": 2, "mp_policy": {"param_dtype": "bfloat16",
                                                                     "reduce_dtype": "float32"}}})",
       R"({"dialect": "deepspeed", "config": {"bf16": {"enabled": true},
                                              "communication_data_type": "fp32"}})"}) {
    input::Document document = job_by(Json::parse(text));
    for (Json& tensor : document.root["workload"]["tensors"]) tensor["dtype"] = "bf16";
    const std::string own = Json::parse(text)["dialect"];
    for (const std::string& emit : {std::string(), own}) {
      SCOPED_TRACE(text + (" --emit " + emit));
      const Tuning tuning = tuned(document, emit);
      const Strategy& baseline = tuning.tuned.baseline.strategy;
      ASSERT_TRUE(baseline.fusion.sums_in_fp32());
      EXPECT_EQ(measure::training_beside(tuning.tuned.winner().strategy, baseline),
                TrainingChange::kSame);
      for (const Ranked& ranked : tuning.tuned.ranking) {
        EXPECT_TRUE(ranked.strategy.fusion.sums_in_fp32()) << ranked.strategy.name;
      }
      if (!emit.empty()) {
        EXPECT_TRUE(tuning.emitted->strategy.fusion.sums_in_fp32()) << tuning.emitted->config;
      }
    }
  }
}

// accelerate's bf16: what is found sums as the job does, so that it is held against the same bytes.
TEST(InFramework, SumsStayAsNarrowAsTheJobHasThem) {
  const input::Document document = job_by(Json::parse(
      R"({"dialect": "fsdp", "config": {"mp_policy": {"param_dtype": "bf16"}, "units": ["l0", "l1", "l2"]}})"));
  for (const std::string& emit : {std::string(), std::string("fsdp")}) {
    const Tuning tuning = tuned(document, emit);
    ASSERT_EQ(tuning.tuned.baseline.strategy.fusion.sum_format, DType::kBf16);
    for (const Ranked& ranked : tuning.tuned.ranking) {
      EXPECT_EQ(ranked.strategy.fusion.sum_format, DType::kBf16) << ranked.strategy.name;
    }
    if (!emit.empty()) {
      EXPECT_EQ(tuning.emitted->strategy.fusion.sum_format, DType::kBf16) << tuning.emitted->config;
    }
  }
}

TEST(InFramework, RowsForAFileCanBeTakenByIt) {
  for (const char* optimizer : {"", "adam", "momentum"}) {
    input::Document document = job_by(Json::parse(R"({"dialect": "pytorch", "config": {}})"));
    if (*optimizer != 0) input::set_key(document, "workload.optimizer", optimizer);
    const Tuning tuning = tuned(document, "pytorch", true);
    const Scenario& scenario = tuning.scenario;
    bool averages = false, sparse = false;
    for (const Alternative& row : tuning.alternatives) {
      if (&row == &tuning.alternatives.front()) continue;
      averages |= row.strategy.local_sgd.enabled;
      sparse |= row.strategy.compression.codec == "dgc";
      EXPECT_EQ(dialect::find_dialect("pytorch")->apply_refusal(row.strategy, scenario.workload,
                                                                scenario.cluster),
                "")
          << row.strategy.name;
    }
    EXPECT_TRUE(averages);
    EXPECT_EQ(sparse, std::string(optimizer) != "adam") << optimizer;
  }
}

}  // namespace
}  // namespace syncline::tune
