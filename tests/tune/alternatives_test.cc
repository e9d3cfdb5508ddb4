// The rows of other trainings beside the best that trains the same. Rules, no figures.
#include "core/tune/alternatives.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/dialect/dialect.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/measure/study.h"
#include "core/run/model_executor.h"

namespace syncline::tune {
namespace {

using measure::Training;

input::Document document_of(const std::string& strategies, const std::string& device = "A100",
                            double gbps = 1, const std::string& more = "") {
  return input::document_from_text(
      "alternatives",
      R"({"name": "alternatives", "workload": ")" SYNCLINE_SOURCE_DIR
      R"(/scenarios/workloads/resnet50_v100.json", "cluster": {"name": "c", "nodes": 4,
      "gpus_per_node": 1, "library": "gloo", "inter": {"latency_us": 20, "bandwidth_gbps": )" +
          std::to_string(gbps) + R"(}, "device": {"name": ")" + device +
          R"(", "memory_gbytes_per_s": 700, "tflops": 10}}, "strategies": )" + strategies + more +
          "}");
}

TuneOptions few(const std::string& take = "") {
  TuneOptions options;
  options.budget = 20;
  options.take = take;
  return options;
}

Tuning tuned(const input::Document& document) {
  return tune_document(document, few(), "", nullptr);
}

const char* const kDdp = R"([{"name": "ddp", "dialect": "pytorch", "config": {}}])";

const Alternative* row_with(const Tuning& tuning, const std::string& codec) {
  for (const Alternative& row : tuning.alternatives) {
    if (row.strategy.compression.codec == codec) return &row;
  }
  return nullptr;
}

std::size_t count_of(const Tuning& tuning, Training training) {
  return static_cast<std::size_t>(
      std::count_if(tuning.alternatives.begin(), tuning.alternatives.end(),
                    [&](const Alternative& row) { return row.training == training; }));
}

TEST(Alternatives, AreOfThreeKindsEachWithItsBestFirst) {
  const Tuning tuning = tuned(document_of(kDdp));
  const auto& rows = tuning.alternatives;
  ASSERT_GE(rows.size(), 5U);
  EXPECT_EQ(rows.front().strategy.name, "ddp");
  for (const Training training : {Training::kSame, Training::kRounded, Training::kChanged}) {
    EXPECT_GE(count_of(tuning, training), 1U) << measure::word_of(training);
  }
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Alternative& row = rows[i];
    EXPECT_LE(rows[i - 1].training, row.training);
    EXPECT_DOUBLE_EQ(row.speedup, rows.front().step_time / row.step_time);
    EXPECT_LE(row.step.low, row.step_time);
    EXPECT_GE(row.step.high, row.step_time);
    EXPECT_LE(row.gain.low, row.speedup);
    EXPECT_GE(row.gain.high, row.speedup);
    EXPECT_FALSE(row.set_with.empty()) << row.strategy.name;
    if (row.training == Training::kSame) continue;
    EXPECT_GE(row.step_time, best_alternative(tuning, row.training)->step_time);
  }
}

// A step time is the one that `run` gives the strategy.
TEST(Alternatives, TakeWhatTheirStrategiesTake) {
  const Tuning tuning = tuned(document_of(kDdp));
  const Scenario& scenario = tuning.scenario;
  const auto model = run::make_model_executor({scenario.cluster, {}, scenario.seed});
  collective::PriceBook book(scenario.cluster);
  for (const Alternative& row : tuning.alternatives) {
    EXPECT_DOUBLE_EQ(
        measure::price_strategy(scenario, row.strategy, *model, book).metrics.step_time,
        row.step_time)
        << row.strategy.name;
  }
}

TEST(Alternatives, AreClearlyFasterOnlyWhereTheNetworkIsSlow) {
  const Tuning slow = tuned(document_of(kDdp));
  EXPECT_TRUE(best_alternative(slow, Training::kRounded)->clearly_faster);
  EXPECT_TRUE(best_alternative(slow, Training::kChanged)->clearly_faster);
  for (const Alternative& row : tuned(document_of(kDdp, "A100", 100000)).alternatives) {
    EXPECT_FALSE(row.clearly_faster) << row.strategy.name;
  }
}

TEST(Alternatives, RespectTheDevice) {
  EXPECT_NE(row_with(tuned(document_of(kDdp, "NVIDIA A100-SXM4-40GB")), "bf16"), nullptr);
  for (const char* device : {"Tesla V100-SXM2-16GB", "Tesla T4", "some machine"}) {
    const Tuning tuning = tuned(document_of(kDdp, device));
    EXPECT_EQ(row_with(tuning, "bf16"), nullptr) << device;
    EXPECT_NE(row_with(tuning, "fp16"), nullptr) << device;
  }
}

// PowerSGD's products would cost nothing on a device of unknown rate.
TEST(Alternatives, AreOfKnownCost) {
  input::Document document = document_of(kDdp);
  EXPECT_NE(row_with(tuned(document), "powersgd"), nullptr);
  document.root["cluster"]["device"].erase("tflops");
  const Tuning tuning = tuned(document);
  EXPECT_EQ(row_with(tuning, "powersgd"), nullptr);
  EXPECT_NE(row_with(tuning, "dgc"), nullptr);
}

TEST(Alternatives, RespectWhatTheBaselineHas) {
  const Tuning tuning = tuned(document_of(
      R"([{"name": "half", "dialect": "pytorch", "config": {"comm_hook": "fp16_compress_hook"}}])"));
  EXPECT_EQ(count_of(tuning, Training::kRounded) + count_of(tuning, Training::kChanged), 0U);
  const Tuning sharded = tuned(document_of(R"([{"name": "f", "dialect": "fsdp", "config": {}}])"));
  EXPECT_EQ(count_of(sharded, Training::kRounded) + count_of(sharded, Training::kChanged), 0U);
}

// Horovod's compression is none or fp16, and no file of ours runs in its jobs.
TEST(Alternatives, RespectTheDialect) {
  const Tuning tuning =
      tuned(document_of(R"([{"name": "h", "dialect": "horovod", "config": {}}])"));
  ASSERT_NE(row_with(tuning, "fp16"), nullptr);
  EXPECT_NE(row_with(tuning, "fp16")->set_with.find(R"("compression": "fp16")"), std::string::npos)
      << row_with(tuning, "fp16")->set_with;
  EXPECT_EQ(row_with(tuning, "bf16"), nullptr);
  EXPECT_EQ(count_of(tuning, Training::kChanged), 0U);
}

TEST(Alternatives, AreTheScenariosOwnWhereItHasAWay) {
  const Tuning tuning = tuned(document_of(
      R"([{"name": "ddp", "dialect": "pytorch", "config": {}},
          {"name": "mine", "compression": {"codec": "dgc", "sparsity": [0.9]}}])",
      "A100", 1, R"(, "baseline": "ddp")"));
  for (const Alternative& row : tuning.alternatives) {
    if (row.strategy.compression.codec != "dgc") continue;
    EXPECT_TRUE(row.strategy.name.starts_with("mine")) << row.strategy.name;
    EXPECT_EQ(row.strategy.compression.sparsity, std::vector{0.9});
  }
  EXPECT_NE(row_with(tuning, "dgc"), nullptr);
}

TEST(Alternatives, AreWrittenWhenTheyAreTaken) {
  const auto* pytorch = dialect::find_dialect("pytorch");
  const auto document = document_of(kDdp);
  const Tuning tuning = tune_document(document, few("fp16"), "", pytorch);
  ASSERT_TRUE(tuning.taken && tuning.emitted);
  EXPECT_EQ(tuning.taken->strategy.compression.codec, "fp16");
  EXPECT_EQ(tuning.emitted->config.value("comm_hook", ""), "fp16_compress_hook");
  EXPECT_DOUBLE_EQ(tuning.emitted->step_time, tuning.taken->metrics.step_time);
  EXPECT_THROW(tune_document(document, few("fp61"), "", pytorch), InputError);
  // DDP has no DGC: a file brings it, no configuration.
  const Tuning sparse = tune_document(document, few("DGC 99.9 %"), "", pytorch);
  ASSERT_TRUE(sparse.taken);
  EXPECT_FALSE(sparse.emitted);
}

}  // namespace
}  // namespace syncline::tune
