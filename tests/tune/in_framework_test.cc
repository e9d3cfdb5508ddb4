// The best in a framework's own keys: it can be set, takes what is said, and nothing is shorter.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/dialect/dialect.h"
#include "formats/dialect/write.h"
#include "formats/input/document.h"
#include "reports/tune_report.h"
#include "studies/rows/memory.h"
#include "studies/tune/alternatives.h"
#include "studies/tune/tuning.h"
#include "tests/support/expect.h"
#include "tests/support/text.h"
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

// Settings that the job's framework lacks never lead: they are named second.
TEST(InFramework, WinnersCanBeSetWithoutEmit) {
  for (const std::string& text : strategies()) {
    const Json strategy = Json::parse(text);
    if (!strategy.contains("dialect")) continue;
    const Tuning tuning = tuned(job_by(strategy), "");
    const Ranked& best = tuning.tuned.winner();
    for (const Alternative& row : tuning.alternatives) {
      EXPECT_FALSE(test::contains(row.set_with, "cannot be written")) << text << row.strategy.name;
    }
    if (tuning.tuned.in_framework && tuning.next) {
      EXPECT_EQ(tuning.next->rival, "own") << text;
    }
    if (!tuning.tuned.outside) continue;
    EXPECT_LT(tuning.tuned.outside->metrics.step_time, best.metrics.step_time) << text;
    const std::string second = reports::outside_sentence(tuning);
    if (best.metrics.step_time < 1.01 * tuning.tuned.outside->metrics.step_time) continue;
    EXPECT_TRUE(test::contains(second, tuning.tuned.outside->strategy.name)) << text << second;
  }
}

// A job of shards on devices that hold no whole copy.
input::Document sharded_job(std::int64_t micro_batches, double gigabytes) {
  input::Document document = job_by(
      Json::parse(R"({"dialect": "fsdp", "config": {"version": 2, "units": ["l0", "l1", "l2"]}})"));
  document.root["workload"]["micro_batches"] = micro_batches;
  document.root["cluster"]["device"]["memory_gbytes"] = gigabytes;
  return document;
}

// Another framework's words that do not fit are no answer.
TEST(InFramework, OtherFrameworksThatDoNotFitAreRefused) {
  const input::Document large = sharded_job(1, 1000);
  const Scenario scenario = input::parse_scenario(large);
  const double whole =
      measure::memory_of(scenario,
                         dialect::reading_of(*dialect::find_dialect("pytorch"), Json::object(),
                                             scenario.workload, scenario.cluster)
                             .strategy)
          .total();
  const double shards = measure::memory_of(scenario, scenario.strategies.front()).total();
  ASSERT_LT(shards, whole);
  const input::Document document = sharded_job(1, (shards + whole) / 2e9);
  const std::string refusal = test::input_error([&] { (void)tuned(document, "pytorch"); });
  EXPECT_TRUE(test::contains(refusal, "--emit fsdp")) << refusal;
  EXPECT_NO_THROW(tuned(document, "fsdp"));
}

// Gradients that add up on each rank are whole: once a step is the best if they fit.
TEST(InFramework, SumsOncePerStepAreSearchedAsFarAsTheyFit) {
  const Tuning roomy = tuned(sharded_job(8, 1000), "fsdp");
  EXPECT_EQ(roomy.emitted->config.value("no_sync", false), true) << roomy.emitted->config;
  EXPECT_LT(roomy.emitted->step_time, roomy.tuned.baseline.metrics.step_time);
  const auto total = [&](const Strategy& one) {
    return measure::memory_of(roomy.scenario, one).total();
  };
  const double once = total(roomy.emitted->strategy);
  const double each = total(roomy.tuned.baseline.strategy);
  ASSERT_GT(once, each);
  const Tuning narrow = tuned(sharded_job(8, (each + once) / 2e9), "fsdp");
  EXPECT_TRUE(measure::memory_of(narrow.scenario, narrow.emitted->strategy).fits());
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

// bf16 and fp16 have as many bits, and round otherwise.
TEST(InFramework, SumsInAnotherHalfFormatAreRounded) {
  input::Document document = job_by(Json::parse(R"({"dialect": "fsdp", "config": {}})"));
  for (Json& tensor : document.root["workload"]["tensors"]) tensor["dtype"] = "bf16";
  const Scenario scenario = input::parse_scenario(document);
  const auto sums_in = [&](const char* format) {
    const Json config{{"mp_policy", {{"param_dtype", "bf16"}, {"reduce_dtype", format}}}};
    return dialect::reading_of(*dialect::find_dialect("fsdp"), config, scenario.workload,
                               scenario.cluster)
        .strategy;
  };
  const Strategy& own = scenario.strategies.front();
  EXPECT_EQ(measure::training_beside(sums_in("bf16"), own), TrainingChange::kSame);
  EXPECT_EQ(measure::training_beside(sums_in("fp16"), own), TrainingChange::kRounded);
  EXPECT_EQ(measure::training_beside(sums_in("fp32"), own), TrainingChange::kSame);
  EXPECT_EQ(measure::training_beside(own, sums_in("fp32")), TrainingChange::kRounded);
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
