// torchft's LocalSGD and DiLoCo: what the constructor's arguments come to, what it refuses, and the
// way back.
#include "core/dialect/dialects.h"

#include <gtest/gtest.h>

#include "core/dialect/write.h"
#include "core/error.h"
#include "core/plan/planner.h"
#include "tests/support/readings.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

using test::contains;

Workload net() {
  Workload workload;
  workload.forward = 0.01;
  for (int i = 0; i < 8; ++i) {
    workload.tensors.push_back(test::tensor_of("layer" + std::to_string(i), {100}));
  }
  return workload;
}

Reading reading_of(const std::string& config, const Cluster& cluster = test::cluster_of(4, 1)) {
  return test::read_config(torchft_dialect(), config, net(), cluster);
}

TEST(TorchftDialect, StreamingDiLoCo) {
  const Strategy strategy =
      reading_of(R"({"sync_every": 20, "num_fragments": 2, "fragment_sync_delay": 5,
                     "fragment_update_alpha": 0.25, "should_quantize": true,
                     "outer_optimizer": {"lr": 0.4, "momentum": 0.8, "nesterov": true}})")
          .strategy;
  const LocalSgd& local = strategy.local_sgd;
  EXPECT_TRUE(local.enabled);
  EXPECT_EQ(local.period, 20);
  EXPECT_EQ(local.fragments, 2);
  EXPECT_EQ(local.delay, 5);
  EXPECT_EQ(local.outer, (Outer{Outer::Optimizer::kNesterov, 0.4, 0.8, 0.25}));
  EXPECT_EQ(strategy.compression.codec, "fp8");
  EXPECT_EQ(strategy.fusion.rule, Fusion::Rule::kNone);  // each parameter by itself
}

TEST(TorchftDialect, LocalSgdIsTheMeanOverTheGroups) {
  const Reading reading =
      reading_of(R"({"semi_sync_method": "local_sgd", "sync_every": 5})", test::cluster_of(2, 4));
  const LocalSgd& local = reading.strategy.local_sgd;
  EXPECT_EQ(local.subgroup, 4);  // a node
  EXPECT_EQ(local.outer.optimizer, Outer::Optimizer::kSgd);
  EXPECT_EQ(local.outer.rate, 1);
  EXPECT_TRUE(test::has_note(reading, "averaged in one bucket"));
  const Reading alone = reading_of(R"({"sync_every": 5})", test::cluster_of(1, 4));
  EXPECT_TRUE(alone.strategy.local_sgd.enabled);  // four ranks are four groups
  const Reading one =
      reading_of(R"({"sync_every": 5, "group_world_size": 4})", test::cluster_of(1, 4));
  EXPECT_FALSE(one.strategy.local_sgd.enabled);
  EXPECT_TRUE(test::has_note(one, "one replica group"));
}

// Slower groups take fewer steps between two syncs.
TEST(TorchftDialect, EachBlockOfGroupsMayHaveItsOwnSteps) {
  const Strategy strategy = reading_of(R"({"sync_every": [30, 10], "num_fragments": 2})").strategy;
  EXPECT_EQ(strategy.local_sgd.periods, (std::vector<std::int64_t>{30, 10}));
  EXPECT_EQ(strategy.local_sgd.period, 20);
  const auto written = write_config(torchft_dialect(), strategy, net(), test::cluster_of(4, 1));
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(written->config["sync_every"], Json({30, 10}));
  EXPECT_THROW(reading_of(R"({"sync_every": [30, 11]})"), InputError);
  EXPECT_THROW(reading_of(R"({"sync_every": [30, 9], "num_fragments": 2})"), InputError);
  EXPECT_THROW(reading_of(R"({"sync_every": []})"), InputError);
  EXPECT_THROW(reading_of(R"({"sync_every": [30, 20, 10]})"), InputError);  // of four groups
}

TEST(TorchftDialect, RefusesWhatTheConstructorDoes) {
  for (const auto& [config, part] : std::vector<std::pair<const char*, const char*>>{
           {R"({})", "sync_every: missing"},
           {R"({"sync_every": 3, "num_fragments": 4})", "only one fragment"},
           {R"({"sync_every": 10, "num_fragments": 4})", "a multiple of num_fragments, 4"},
           {R"({"sync_every": 20, "num_fragments": 2, "fragment_sync_delay": 10})",
            "less than sync_every / num_fragments, 10"},
           {R"({"sync_every": 20, "num_fragments": 20})", "only 8 parameters"},
           {R"({"sync_every": 20, "fragment_update_alpha": 2})", "fragment_update_alpha"},
           {R"({"sync_every": 20, "group_world_size": 3})", "a divisor of the 4"},
           {R"({"sync_every": 20, "outer_optimizer": {"momentum": 0.9, "nesterov": false}})",
            "not modelled yet"},
           {R"({"sync_every": 20, "outer_optimizer": {"momentum": 0}})", "asks for a momentum"},
           {R"({"sync_every": 20, "fragment_delay": 2})", "fragment_sync_delay"},
           {R"({"semi_sync_method": "local_sgd", "sync_every": 5, "num_fragments": 2})",
            "num_fragments"}}) {
    const auto message = test::refusal_of(torchft_dialect(), config, net(), test::cluster_of(4, 1));
    EXPECT_TRUE(contains(message, part)) << config << ": " << message;
  }
}

TEST(TorchftDialect, WritesWhatItReads) {
  for (const char* config :
       {R"({"sync_every": 20})", R"({"semi_sync_method": "local_sgd", "sync_every": 5})",
        R"({"sync_every": 20, "num_fragments": 2, "fragment_sync_delay": 5,
            "fragment_update_alpha": 0.25, "should_quantize": true})",
        R"({"sync_every": 20, "use_bucketization": true, "bucket_cap_mb": 0.0005})",
        R"({"sync_every": 20, "outer_optimizer": {"lr": 0.5, "momentum": 0, "nesterov": false}})",
        R"({"sync_every": 20, "outer_optimizer": {"lr": 1, "momentum": 0, "nesterov": false}})",
        R"({"sync_every": 20, "group_world_size": 2})"}) {
    const Strategy strategy = reading_of(config).strategy;
    SCOPED_TRACE(config);
    const Written back =
        test::expect_comes_back(torchft_dialect(), strategy, net(), test::cluster_of(4, 1));
    EXPECT_EQ(back.strategy.local_sgd, strategy.local_sgd);
  }
}

// Who averages nothing has no configuration, and is told so.
TEST(TorchftDialect, RefusesToWriteWhatAveragesNothing) {
  Strategy plain;
  plain.name = "plain";
  Strategy adaptive = reading_of(R"({"sync_every": 20})").strategy;
  adaptive.local_sgd.adaptive = true;
  for (const Strategy& strategy : {plain, adaptive}) {
    EXPECT_THROW(write_config(torchft_dialect(), strategy, net(), test::cluster_of(4, 1)),
                 InputError);
  }
}

Reading diloco_of(const std::string& config, const Cluster& cluster = test::cluster_of(4, 2)) {
  return test::read_config(diloco_dialect(), config, net(), cluster);
}

TEST(DilocoDialect, MaxTextsDefaults) {
  const LocalSgd local = diloco_of(R"({"enable_diloco": true})").strategy.local_sgd;
  EXPECT_EQ(local.period, 36);
  EXPECT_EQ(local.subgroup, 2);  // a replica a node
  EXPECT_EQ(local.outer, (Outer{Outer::Optimizer::kNesterov, 0.3, 0.9, 0}));
  EXPECT_EQ(local.fragments, 1);
  for (const int inside : {1, 2}) {  // XLA joins what is sent between replicas too
    const Reading reading = diloco_of(R"({"enable_diloco": true})", test::cluster_of(4, inside));
    EXPECT_EQ(reading.strategy.fusion.size, 30 * kMiB) << inside;
  }
  const LocalSgd two = diloco_of(R"({"dcn_diloco_parallelism": 2})").strategy.local_sgd;
  EXPECT_EQ(two.subgroup, 4);
}

// max(1, round(period / fragments)) steps lie between two fragments; only where learners have
// programs or threads of their own does training go on beside them.
TEST(DilocoDialect, Streaming) {
  const std::string keys = R"({"enable_streaming_diloco": true, "num_diloco_fragments": 8,
      "diloco_sync_period": 36, "num_communication_overlapping_steps": 2,
      "communication_overlapping_alpha": 0.5)";
  const Reading reading = diloco_of(keys + R"(, "enable_threaded_diloco": true})");
  const LocalSgd& local = reading.strategy.local_sgd;
  EXPECT_EQ(local.period, 32);  // 4.5 is rounded to the even 4
  EXPECT_EQ(local.fragments, 8);
  EXPECT_EQ(local.delay, 2);
  EXPECT_EQ(local.outer.mix, 0.5);
  EXPECT_TRUE(test::has_note(reading, "32 steps"));
  const Reading together = diloco_of(keys + "}");
  EXPECT_EQ(together.strategy.local_sgd.delay, 0);
  EXPECT_TRUE(test::has_note(together, "delays values alone"));
}

TEST(DilocoDialect, ComesBackAndRefuses) {
  const Cluster cluster = test::cluster_of(4, 2);
  for (const char* keys :
       {R"({})", R"({"diloco_sync_period": 100, "diloco_outer_lr": 0.7})",
        R"({"enable_streaming_diloco": true, "num_diloco_fragments": 4, "diloco_sync_period": 40,
            "num_communication_overlapping_steps": 3, "enable_non_spmd_diloco": true})"}) {
    const Strategy strategy = diloco_of(keys).strategy;
    SCOPED_TRACE(keys);
    const Written back = test::expect_comes_back(diloco_dialect(), strategy, net(), cluster);
    EXPECT_EQ(diloco_of(back.config.dump()).strategy.local_sgd, strategy.local_sgd);
  }
  for (const auto& [keys, part] : std::vector<std::pair<const char*, const char*>>{
           {R"({"dcn_diloco_parallelism": 3})", "a divisor of the 8"},
           {R"({"enable_streaming_diloco": true})", "num_diloco_fragments"},
           {R"({"enable_streaming_diloco": true, "num_diloco_fragments": 9})", "only 8 parameters"},
           {R"({"enable_streaming_diloco": true, "num_diloco_fragments": 4,
                "num_communication_overlapping_steps": 9})",
            "less than 9"},
           {R"({"diloco_period": 5})", "diloco_sync_period"}}) {
    const auto message = test::refusal_of(diloco_dialect(), keys, net(), cluster);
    EXPECT_TRUE(contains(message, part)) << keys << ": " << message;
  }
}

}  // namespace
}  // namespace syncline::dialect
