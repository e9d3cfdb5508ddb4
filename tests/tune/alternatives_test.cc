// The rows of other trainings beside the best that trains the same. Rules, no figures.
#include "studies/tune/alternatives.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.h"
#include "formats/dialect/dialect.h"
#include "formats/dialect/write.h"
#include "formats/input/document.h"
#include "studies/tune/tuning.h"
#include "tests/support/expect.h"
#include "tests/support/text.h"
#include "tests/support/tunings.h"

namespace syncline::tune {
namespace {

using measure::TrainingChange;

// ResNet-50 on four GPUs, by the first of these strategies unless `more` says otherwise.
input::Document resnet_by(const std::string& strategies, const std::string& more = "") {
  return input::document_from_text("alternatives",
                                   R"({"name": "alternatives", "workload": ")" SYNCLINE_SOURCE_DIR
                                   R"(/scenarios/workloads/resnet50_v100.json",
      "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 1, "library": "gloo",
                  "inter": {"latency_us": 20, "bandwidth_gbps": 1},
                  "device": {"name": "A100", "memory_gbytes_per_s": 700, "tflops": 10}},
      "strategies": )" + strategies + more +
                                       "}");
}

input::Document with(input::Document document, const std::string& path, const Json& value) {
  input::set_key(document, path, value);
  return document;
}

TuneOptions few(const std::string& take = "") {
  TuneOptions options;
  options.budget = 20;
  options.take = take;
  return options;
}

Tuning quickly_tuned(const input::Document& document) { return test::tuning_of(document, few()); }

const char* const kDdp = R"([{"name": "ddp", "dialect": "pytorch", "config": {}}])";

const Alternative* row_with(const Tuning& tuning, const std::string& codec) {
  const auto row = std::ranges::find(tuning.alternatives, codec, [](const Alternative& one) {
    return one.strategy.compression.codec;
  });
  return row == tuning.alternatives.end() ? nullptr : &*row;
}

std::ptrdiff_t count_of(const Tuning& tuning, TrainingChange training) {
  return std::ranges::count(tuning.alternatives, training, &Alternative::training);
}

TEST(Alternatives, AreOfThreeKindsEachWithItsBestFirst) {
  const Tuning tuning = quickly_tuned(resnet_by(kDdp));
  const auto& rows = tuning.alternatives;
  ASSERT_GE(rows.size(), 5U);
  EXPECT_EQ(rows.front().strategy.name, "ddp");
  for (const TrainingChange training :
       {TrainingChange::kSame, TrainingChange::kRounded, TrainingChange::kChanged}) {
    EXPECT_GE(count_of(tuning, training), 1) << measure::word_of(training);
  }
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Alternative& row = rows[i];
    EXPECT_LE(rows[i - 1].training, row.training);
    EXPECT_DOUBLE_EQ(row.speedup, rows.front().metrics.step_time / row.metrics.step_time);
    EXPECT_LE(row.step.low, row.metrics.step_time);
    EXPECT_GE(row.step.high, row.metrics.step_time);
    EXPECT_LE(row.gain.low, row.speedup);
    EXPECT_GE(row.gain.high, row.speedup);
    EXPECT_FALSE(row.set_with.empty()) << row.strategy.name;
    if (row.training == TrainingChange::kSame) continue;
    EXPECT_GE(row.metrics.step_time, best_alternative(tuning, row.training)->metrics.step_time);
  }
}

// A link that cannot carry the training has outer steps as a row, one that can has none.
TEST(Alternatives, HaveOuterStepsIfTheLinkIsTooSlow) {
  const auto outer_of = [](double gbps) {
    const Tuning tuning =
        quickly_tuned(with(resnet_by(kDdp), "cluster.inter.bandwidth_gbps", gbps));
    const auto row = std::ranges::find_if(tuning.alternatives, [](const Alternative& one) {
      return one.strategy.local_sgd.outer.any();
    });
    return row == tuning.alternatives.end() ? std::optional<Alternative>() : *row;
  };
  const auto far = outer_of(0.02);
  ASSERT_TRUE(far);
  EXPECT_EQ(far->strategy.name, "DiLoCo every 100 steps");
  EXPECT_EQ(far->training, TrainingChange::kChanged);
  EXPECT_FALSE(far->set_with.empty());
  EXPECT_FALSE(outer_of(10));
}

// A framework of averaging alone cannot say the best; the row of outer steps can be taken from it.
TEST(Alternatives, OuterStepsComeFromTheirFramework) {
  const input::Document slow = with(resnet_by(kDdp), "cluster.inter.bandwidth_gbps", 0.02);
  TuneOptions options;
  options.budget = 20;
  for (const char* framework : {"torchft", "diloco"}) {
    const dialect::Dialect* emit = dialect::find_dialect(framework);
    options.take.clear();
    const std::string refusal =
        test::input_error([&] { (void)test::tuning_of(slow, options, emit); });
    EXPECT_TRUE(test::contains(refusal, "--take writes another row: 'DiLoCo every 100 steps'"))
        << refusal;
    options.take = "DiLoCo every 100 steps";
    const Tuning tuning = test::tuning_of(slow, options, emit);
    ASSERT_TRUE(tuning.emitted) << framework;
    EXPECT_TRUE(tuning.emitted->exact);
    EXPECT_TRUE(tuning.emitted->strategy.local_sgd.outer.any());
  }
}

// A step time is the one that `run` gives the strategy.
TEST(Alternatives, TakeWhatTheirStrategiesTake) {
  const Tuning tuning = quickly_tuned(resnet_by(kDdp));
  const Scenario& scenario = tuning.scenario;
  Evaluator model(scenario);
  for (const Alternative& row : tuning.alternatives) {
    EXPECT_DOUBLE_EQ(model.step_time(row.strategy), row.metrics.step_time) << row.strategy.name;
  }
}

TEST(Alternatives, AreClearlyFasterOnlyIfTheNetworkIsSlow) {
  const Tuning slow = quickly_tuned(resnet_by(kDdp));
  EXPECT_TRUE(best_alternative(slow, TrainingChange::kRounded)->clearly_faster);
  EXPECT_TRUE(best_alternative(slow, TrainingChange::kChanged)->clearly_faster);
  for (const Alternative& row : slow.alternatives) {
    EXPECT_TRUE(!row.clearly_faster || row.gain.low > 1) << row.strategy.name;
  }
  for (const Alternative& row :
       quickly_tuned(with(resnet_by(kDdp), "cluster.inter.bandwidth_gbps", 100000)).alternatives) {
    EXPECT_FALSE(row.clearly_faster) << row.strategy.name;
  }
}

TEST(Alternatives, RespectTheDevice) {
  EXPECT_NE(
      row_with(quickly_tuned(with(resnet_by(kDdp), "cluster.device.name", "NVIDIA A100-SXM4-40GB")),
               "bf16"),
      nullptr);
  for (const char* device : {"Tesla V100-SXM2-16GB", "Tesla T4", "some machine"}) {
    const Tuning tuning = quickly_tuned(with(resnet_by(kDdp), "cluster.device.name", device));
    EXPECT_EQ(row_with(tuning, "bf16"), nullptr) << device;
    EXPECT_NE(row_with(tuning, "fp16"), nullptr) << device;
  }
}

// PowerSGD's products would cost nothing on a device of unknown rate.
TEST(Alternatives, AreOfKnownCost) {
  input::Document document = resnet_by(kDdp);
  EXPECT_NE(row_with(quickly_tuned(document), "powersgd"), nullptr);
  document.root["cluster"]["device"].erase("tflops");
  const Tuning tuning = quickly_tuned(document);
  EXPECT_EQ(row_with(tuning, "powersgd"), nullptr);
  EXPECT_NE(row_with(tuning, "dgc"), nullptr);
}

// DGC leaves gradients in 16 bits as they are: a row of it would be the baseline again.
TEST(Alternatives, ChangeSomething) {
  input::Document document = resnet_by(kDdp);
  document.root["workload"] = {
      {"name", "w"},
      {"forward_ms", 5},
      {"dtype", "fp16"},
      {"tensors", {{{"name", "a"}, {"shape", {2000, 2000}}, {"backward_us", 4000}}}}};
  const Tuning tuning = quickly_tuned(document);
  EXPECT_EQ(row_with(tuning, "dgc"), nullptr);
  EXPECT_EQ(row_with(tuning, "fp16"), nullptr);
  EXPECT_EQ(count_of(tuning, TrainingChange::kRounded), 0);
}

TEST(Alternatives, RespectWhatTheBaselineHas) {
  for (
      const char* baseline :
      {R"([{"name": "half", "dialect": "pytorch", "config": {"comm_hook": "fp16_compress_hook"}}])",
       R"([{"name": "f", "dialect": "fsdp", "config": {}}])"}) {
    const Tuning tuning = quickly_tuned(resnet_by(baseline));
    EXPECT_EQ(count_of(tuning, TrainingChange::kRounded), 0) << baseline;
    EXPECT_EQ(count_of(tuning, TrainingChange::kChanged), 0) << baseline;
  }
}

// Horovod's compression is none or fp16, and no file of ours runs in its jobs.
TEST(Alternatives, RespectTheDialect) {
  const Tuning tuning =
      quickly_tuned(resnet_by(R"([{"name": "h", "dialect": "horovod", "config": {}}])"));
  ASSERT_NE(row_with(tuning, "fp16"), nullptr);
  EXPECT_NE(row_with(tuning, "fp16")->set_with.find(R"("compression": "fp16")"), std::string::npos)
      << row_with(tuning, "fp16")->set_with;
  EXPECT_EQ(row_with(tuning, "bf16"), nullptr);
  EXPECT_EQ(count_of(tuning, TrainingChange::kChanged), 0);
}

TEST(Alternatives, AreTheScenariosOwnIfItHasAWay) {
  const Tuning tuning = quickly_tuned(resnet_by(
      R"([{"name": "ddp", "dialect": "pytorch", "config": {}},
          {"name": "mine", "compression": {"codec": "dgc", "sparsity": [0.9]}}])",
      R"(, "baseline": "ddp")"));
  for (const Alternative& row : tuning.alternatives) {
    if (row.strategy.compression.codec != "dgc") continue;
    EXPECT_TRUE(row.strategy.name.starts_with("mine")) << row.strategy.name;
    EXPECT_EQ(row.strategy.compression.sparsity, std::vector{0.9});
  }
  EXPECT_NE(row_with(tuning, "dgc"), nullptr);
}

// In a framework that lacks the scenario's own way its own words for it stay.
TEST(Alternatives, AreTheFrameworksIfItLacksTheScenarios) {
  const char* const kMixed = R"([{"name": "h", "dialect": "horovod", "config": {}},
      {"name": "levels", "compression": {"codec": "fp16"}, "streams": 4}])";
  const Tuning tuning = quickly_tuned(resnet_by(kMixed, R"(, "baseline": "h")"));
  ASSERT_NE(row_with(tuning, "fp16"), nullptr);
  EXPECT_TRUE(row_with(tuning, "fp16")->strategy.name.starts_with("fp16"));
  EXPECT_NE(row_with(tuning, "fp16")->set_with.find("compression"), std::string::npos);
}

// Asked for another framework than the baseline's, its own words are told and written.
TEST(Alternatives, AreInTheWordsOfTheFrameworkThatIsAskedFor) {
  const auto document = resnet_by(kDdp);
  const Tuning tuning = test::tuning_of(document, few("fp16"), dialect::find_dialect("horovod"));
  ASSERT_TRUE(tuning.taken && tuning.emitted);
  EXPECT_EQ(tuning.emitted->config.value("compression", ""), "fp16");
  EXPECT_DOUBLE_EQ(tuning.emitted->step_time, tuning.taken->metrics.step_time);
  EXPECT_EQ(count_of(tuning, TrainingChange::kChanged), 0) << "Horovod has no such way";
  const Tuning plain = test::tuning_of(resnet_by(R"([{"name": "plain"}])"), few("fp16"),
                                       dialect::find_dialect("pytorch"));
  ASSERT_TRUE(plain.taken && plain.emitted);
  EXPECT_EQ(plain.emitted->config.value("comm_hook", ""), "fp16_compress_hook");
}

// Sharded and pipelined frameworks have no words for most ways, and refuse some beside their own.
TEST(Alternatives, AreNeverWhatTheFrameworkCannotSay) {
  for (const char* strategy :
       {R"({"dialect": "deepspeed", "config": {"zero_optimization": {"stage": 0}}})",
        R"({"dialect": "deepspeed", "config": {"zero_optimization": {"stage": 2}}})",
        R"({"dialect": "deepspeed", "config": {"zero_optimization": {"stage": 3}}})",
        R"({"dialect": "megatron", "config": {"overlap-grad-reduce": true}})",
        R"({"dialect": "hf_trainer", "config": {}})", R"({"dialect": "paddle", "config": {}})",
        R"({"dialect": "mindspore", "config": {}})", R"({"dialect": "horovod", "config": {}})"}) {
    Json row = Json::parse(strategy);
    row["name"] = "own";
    const Tuning tuning = quickly_tuned(resnet_by(Json::array({row}).dump()));
    const Scenario& scenario = tuning.scenario;
    for (const Alternative& one : tuning.alternatives) {
      if (one.training == TrainingChange::kSame) continue;
      const auto written =
          dialect::write_config(*dialect::find_dialect(row["dialect"].get<std::string>()),
                                one.strategy, scenario.workload, scenario.cluster);
      EXPECT_TRUE(written && (written->exact || row["dialect"] == one.strategy.dialect))
          << strategy << one.strategy.name;
    }
  }
}

// Of an axis that the search names, nothing is proposed that it does not.
TEST(Alternatives, AreWhatTheSearchAsksFor) {
  const auto search = [](const char* axes) {
    return quickly_tuned(resnet_by(
        kDdp,
        R"(, "search": {"base": "ddp", "streams": [1], "confirm": 0, )" + std::string(axes) + "}"));
  };
  const Tuning none = search(R"("compression": ["none"])");
  for (const char* codec : {"fp16", "bf16", "dgc", "powersgd"}) {
    EXPECT_EQ(row_with(none, codec), nullptr) << codec;
  }
  EXPECT_EQ(count_of(none, TrainingChange::kChanged), 1) << "LocalSGD";
  const Tuning both =
      search(R"("compression": [{"codec": "fp16"}, {"codec": "dgc", "sparsity": [0.9]}, "none"])");
  ASSERT_NE(row_with(both, "fp16"), nullptr);
  ASSERT_NE(row_with(both, "dgc"), nullptr);
  EXPECT_EQ(row_with(both, "dgc")->strategy.compression.sparsity, std::vector{0.9});
  EXPECT_EQ(row_with(both, "bf16"), nullptr);
  // The best of the search is named as in the first line, at the same cost.
  const Ranked& winner = both.tuned.winner();
  EXPECT_TRUE(std::ranges::any_of(both.alternatives, [&](const Alternative& row) {
    return row.strategy.name == winner.strategy.name &&
           row.metrics.step_time == winner.metrics.step_time;
  })) << winner.strategy.name;
  for (const Alternative& row : search(R"("local_sgd": [{"period": 8}, "none"])").alternatives) {
    EXPECT_TRUE(!row.strategy.local_sgd.enabled || row.strategy.local_sgd.period == 8);
  }
}

// DGC holds momentum and residual beside what DDP holds: in between there is no room for it.
TEST(Alternatives, AreNotTheBestIfTheyDoNotFit) {
  input::Document document = resnet_by(
      R"([{"name": "ddp", "dialect": "pytorch", "config": {}},
          {"name": "rare", "local_sgd": {"period": 4}}])",
      R"(, "baseline": "ddp")");
  document.root["cluster"]["device"]["memory_gbytes"] = 0.6;
  const Tuning tuning = quickly_tuned(document);
  const Alternative* dgc = row_with(tuning, "dgc");
  ASSERT_NE(dgc, nullptr);
  EXPECT_FALSE(dgc->memory.fits());
  EXPECT_FALSE(dgc->clearly_faster);
  EXPECT_TRUE(row_with(quickly_tuned(resnet_by(kDdp)), "dgc")->clearly_faster) << "with room";
  const Alternative* best = best_alternative(tuning, TrainingChange::kChanged);
  ASSERT_NE(best, nullptr);
  EXPECT_TRUE(best->memory.fits());
  EXPECT_GT(best->metrics.step_time, dgc->metrics.step_time);
  EXPECT_EQ(best, &*std::ranges::find(tuning.alternatives, TrainingChange::kChanged,
                                      &Alternative::training))
      << "what fits comes first";
}

// Where NCCL was measured, a ring on links that nobody measured is no match for it.
TEST(Alternatives, AreMeasuredIfTheBaselineIs) {
  const auto document = with(resnet_by(R"([{"name": "plain"},
                    {"name": "bare", "algorithm": "ring", "compression": {"codec": "fp16"}}])",
                                       R"(, "baseline": "plain")"),
                             "cluster.library", "nccl");
  Tuning tuning = quickly_tuned(document);
  ASSERT_NE(row_with(tuning, "fp16"), nullptr);
  EXPECT_TRUE(row_with(tuning, "fp16")->strategy.name.starts_with("bare"));
  tuning.scenario.cluster.cost_model =
      [](const collective::Collective& asked) -> std::optional<CollectiveTime> {
    if (!asked.nccl) return std::nullopt;
    return CollectiveTime{.time = 1e-2 + 1e-9 * static_cast<double>(asked.bytes())};
  };
  add_alternatives(document, few(), nullptr, {}, tuning);
  ASSERT_NE(row_with(tuning, "fp16"), nullptr);
  EXPECT_TRUE(row_with(tuning, "fp16")->strategy.name.starts_with("fp16"));
  EXPECT_EQ(tuning.tuned.unmeasured, std::vector<std::string>{"'bare'"});
}

// Without a framework to be written for, the row says what its own framework says of the best.
TEST(Alternatives, SayHowTheBestIsSet) {
  const auto document = with(
      resnet_by(R"([{"name": "late", "dialect": "pytorch", "config": {"bucket_cap_mb": 1000}}])"),
      "cluster.inter.bandwidth_gbps", 10);
  const Tuning tuning = quickly_tuned(document);
  const auto* pytorch = dialect::find_dialect("pytorch");
  const Tuning asked = test::tuning_of(document, few(), pytorch);
  // Another API of the framework is none that was asked for.
  const auto set_with = [](const Tuning& of) {
    std::vector<std::string> lines;
    for (const Alternative& row : of.alternatives) {
      if (row.strategy.dialect != "fsdp") lines.push_back(row.set_with);
    }
    return lines;
  };
  EXPECT_EQ(set_with(tuning), set_with(asked));
  const std::string code = dialect::config_text(*pytorch, asked.emitted->config);
  EXPECT_GT(std::ranges::count(tuning.alternatives, code, &Alternative::set_with), 0) << code;
}

TEST(Alternatives, TellPublishedAccuracies) {
  const Tuning tuning = quickly_tuned(resnet_by(
      R"([{"name": "ddp", "dialect": "pytorch", "config": {}},
          {"name": "rare", "local_sgd": {"period": 4}}])",
      R"(, "baseline": "ddp", "published": [
          {"strategy": "rare", "accuracy": 0.7, "source": "x"},
          {"strategy": "ddp", "accuracy": 0.75, "source": "x"}])"));
  std::size_t told = 0;
  for (const Alternative& row : tuning.alternatives) {
    if (!row.outcome) continue;
    ++told;
    EXPECT_TRUE(row.outcome->published);
    EXPECT_EQ(row.outcome->end, row.strategy.name == "ddp" ? 0.75 : 0.7);
    EXPECT_EQ(row.outcome->baseline, 0.75);
  }
  EXPECT_EQ(told, 2U);
}

TEST(Alternatives, AreWrittenWhenTheyAreTaken) {
  const auto* pytorch = dialect::find_dialect("pytorch");
  const auto document = resnet_by(kDdp);
  const Tuning tuning = test::tuning_of(document, few("fp16"), pytorch);
  ASSERT_TRUE(tuning.taken && tuning.emitted);
  EXPECT_EQ(tuning.taken->strategy.compression.codec, "fp16");
  EXPECT_EQ(tuning.emitted->config.value("comm_hook", ""), "fp16_compress_hook");
  EXPECT_DOUBLE_EQ(tuning.emitted->step_time, tuning.taken->metrics.step_time);
  EXPECT_EQ(dialect::config_text(*pytorch, tuning.emitted->config),
            row_with(tuning, "fp16")->set_with);
  EXPECT_THROW(test::tuning_of(document, few("fp61"), pytorch), InputError);
  // DDP has no DGC: a file brings it, no configuration.
  const Tuning sparse = test::tuning_of(document, few("DGC 99.9 %"), pytorch);
  ASSERT_TRUE(sparse.taken);
  EXPECT_FALSE(sparse.emitted);
}

}  // namespace
}  // namespace syncline::tune
