// torchft's LocalSGD and DiLoCo: what the constructor's arguments come to, what it refuses, and the
// way back.
#include "formats/dialect/dialects.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/plan.h"
#include "formats/dialect/write.h"
#include "tests/support/readings.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

using test::cluster_of;
using test::has_note;

Workload net() {
  Workload workload;
  workload.forward = 0.01;
  for (int i = 0; i < 8; ++i) {
    workload.tensors.push_back(test::tensor_of("layer" + std::to_string(i), {100}));
  }
  return workload;
}

const test::Framework kTorchft{torchft_dialect(), cluster_of(4, 1)};
const test::Framework kDiloco{diloco_dialect(), cluster_of(4, 2)};

TEST(TorchftDialect, StreamingDiLoCo) {
  const Strategy strategy =
      kTorchft.strategy_of(R"({"sync_every": 20, "num_fragments": 2, "fragment_sync_delay": 5,
                     "fragment_update_alpha": 0.25, "should_quantize": true,
                     "outer_optimizer": {"lr": 0.4, "momentum": 0.8, "nesterov": true}})",
                           net());
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
  const Reading reading = kTorchft.on(cluster_of(2, 4))
                              .read(R"({"semi_sync_method": "local_sgd", "sync_every": 5})", net());
  const LocalSgd& local = reading.strategy.local_sgd;
  EXPECT_EQ(local.subgroup, 4);  // a node
  EXPECT_EQ(local.outer.optimizer, Outer::Optimizer::kSgd);
  EXPECT_EQ(local.outer.rate, 1);
  EXPECT_TRUE(has_note(reading, "averaged in one bucket"));
  const Reading alone = kTorchft.on(cluster_of(1, 4)).read(R"({"sync_every": 5})", net());
  EXPECT_TRUE(alone.strategy.local_sgd.enabled);  // four ranks are four groups
  const Reading one =
      kTorchft.on(cluster_of(1, 4)).read(R"({"sync_every": 5, "group_world_size": 4})", net());
  EXPECT_FALSE(one.strategy.local_sgd.enabled);
  EXPECT_TRUE(has_note(one, "one replica group"));
}

// Slower groups take fewer steps between two syncs.
TEST(TorchftDialect, EachBlockOfGroupsMayHaveItsOwnSteps) {
  const Strategy strategy =
      kTorchft.strategy_of(R"({"sync_every": [30, 10], "num_fragments": 2})", net());
  EXPECT_EQ(strategy.local_sgd.periods, (std::vector<std::int64_t>{30, 10}));
  EXPECT_EQ(strategy.local_sgd.period, 20);
  const auto written = kTorchft.write(strategy, net());
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(written->config["sync_every"], Json({30, 10}));
  EXPECT_THROW(kTorchft.read(R"({"sync_every": [30, 11]})", net()), InputError);
  EXPECT_THROW(kTorchft.read(R"({"sync_every": [30, 9], "num_fragments": 2})", net()), InputError);
  EXPECT_THROW(kTorchft.read(R"({"sync_every": []})", net()), InputError);
  EXPECT_THROW(kTorchft.read(R"({"sync_every": [30, 20, 10]})", net()),
               InputError);  // of four groups
}

TEST(TorchftDialect, RefusesWhatTheConstructorDoes) {
  kTorchft.expect_refusals(
      net(), {{R"({})", "sync_every: missing"},
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
               "num_fragments"}});
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
    const Strategy strategy = kTorchft.strategy_of(config, net());
    SCOPED_TRACE(config);
    const Written back = kTorchft.expect_comes_back(strategy, net());
    EXPECT_EQ(back.strategy.local_sgd, strategy.local_sgd);
  }
}

// Who averages nothing has no configuration, and is told so.
TEST(TorchftDialect, RefusesToWriteWhatAveragesNothing) {
  Strategy plain;
  plain.name = "plain";
  Strategy adaptive = kTorchft.strategy_of(R"({"sync_every": 20})", net());
  adaptive.local_sgd.adaptive = true;
  for (const Strategy& strategy : {plain, adaptive}) {
    EXPECT_THROW(kTorchft.write(strategy, net()), InputError);
  }
}

TEST(DilocoDialect, MaxTextsDefaults) {
  const LocalSgd local = kDiloco.read(R"({"enable_diloco": true})", net()).strategy.local_sgd;
  EXPECT_EQ(local.period, 36);
  EXPECT_EQ(local.subgroup, 2);  // a replica a node
  EXPECT_EQ(local.outer, (Outer{Outer::Optimizer::kNesterov, 0.3, 0.9, 0}));
  EXPECT_EQ(local.fragments, 1);
  for (const int inside : {1, 2}) {  // XLA joins what is sent between replicas too
    const Reading reading =
        kDiloco.on(cluster_of(4, inside)).read(R"({"enable_diloco": true})", net());
    EXPECT_EQ(reading.strategy.fusion.size, 30 * kMiB) << inside;
  }
  const LocalSgd two = kDiloco.read(R"({"dcn_diloco_parallelism": 2})", net()).strategy.local_sgd;
  EXPECT_EQ(two.subgroup, 4);
}

// max(1, round(period / fragments)) steps lie between two fragments; only where learners have
// programs or threads of their own does training go on beside them.
TEST(DilocoDialect, Streaming) {
  const std::string keys = R"({"enable_streaming_diloco": true, "num_diloco_fragments": 8,
      "diloco_sync_period": 36, "num_communication_overlapping_steps": 2,
      "communication_overlapping_alpha": 0.5)";
  const Reading reading = kDiloco.read(keys + R"(, "enable_threaded_diloco": true})", net());
  const LocalSgd& local = reading.strategy.local_sgd;
  EXPECT_EQ(local.period, 32);  // 4.5 is rounded to the even 4
  EXPECT_EQ(local.fragments, 8);
  EXPECT_EQ(local.delay, 2);
  EXPECT_EQ(local.outer.mix, 0.5);
  EXPECT_TRUE(has_note(reading, "32 steps"));
  const Reading together = kDiloco.read(keys + "}", net());
  EXPECT_EQ(together.strategy.local_sgd.delay, 0);
  EXPECT_TRUE(has_note(together, "delays values alone"));
}

TEST(DilocoDialect, ComesBackAndRefuses) {
  for (const char* keys :
       {R"({})", R"({"diloco_sync_period": 100, "diloco_outer_lr": 0.7})",
        R"({"enable_streaming_diloco": true, "num_diloco_fragments": 4, "diloco_sync_period": 40,
            "num_communication_overlapping_steps": 3, "enable_non_spmd_diloco": true})"}) {
    const Strategy strategy = kDiloco.read(keys, net()).strategy;
    SCOPED_TRACE(keys);
    const Written back = kDiloco.expect_comes_back(strategy, net());
    EXPECT_EQ(kDiloco.read(back.config.dump(), net()).strategy.local_sgd, strategy.local_sgd);
  }
  kDiloco.expect_refusals(
      net(),
      {{R"({"dcn_diloco_parallelism": 3})", "a divisor of the 8"},
       {R"({"enable_streaming_diloco": true})", "num_diloco_fragments"},
       {R"({"enable_streaming_diloco": true, "num_diloco_fragments": 9})", "only 8 parameters"},
       {R"({"enable_streaming_diloco": true, "num_diloco_fragments": 4,
                "num_communication_overlapping_steps": 9})",
        "less than 9"},
       {R"({"diloco_period": 5})", "diloco_sync_period"}});
}

}  // namespace
}  // namespace syncline::dialect
