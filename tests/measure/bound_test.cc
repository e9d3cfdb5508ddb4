// The lower bound against every way of evaluation a step: by hand where it once lay above its own
// row, and on random scenarios.

#include "core/metrics.h"

#include <gtest/gtest.h>

#include <string>

#include "core/sim/sim_executor.h"
#include "tests/support/random_scenario.h"
#include "tests/support/studies.h"

namespace syncline::measure {
namespace {

Metrics metrics_of(const Json& root, ExecutorFactory executor = run::make_model_executor) {
  return test::studied(root, std::move(executor)).rows[0].metrics;
}

Json scenario(const std::string& cluster, const std::string& tensors,
              const std::string& strategies) {
  return Json::parse(R"({"name": "b", "workload": {"name": "w", "batch": 1, "forward_ms": 10,
                      "tensors": )" +
                     tensors + R"(}, "cluster": {"name": "c", )" + cluster +
                     R"(}, "strategies": )" + strategies + "}");
}

// The example of bound.cc.
TEST(LowerBound, TwoGradientsByHand) {
  Json root = scenario(
      R"("nodes": 2, "gpus_per_node": 1, "library": "links",
         "inter": {"latency_us": 500, "bandwidth_gbps": 2})",
      R"([{"name": "b", "shape": [1000000], "backward_us": 10000},
          {"name": "a", "shape": [1000000], "backward_us": 10000}])",
      R"([{"name": "each", "fusion": {"rule": "none"}},
          {"name": "one", "fusion": {"rule": "one"}}])");
  root["workload"]["update_ms"] = 2;
  const auto rows = test::studied(root).rows;
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) EXPECT_NEAR(row.metrics.lower_bound, 54.5e-3, 1e-9);
  EXPECT_NEAR(rows[0].metrics.step_time, 56e-3, 1e-9);
  EXPECT_NEAR(rows[1].metrics.step_time, 65e-3, 1e-9);
}

// Across steps one bucket is awaited by the first layer; others would be awaited one by one.
TEST(LowerBound, OneBucketsBoundIsValidForAllAcrossSteps) {
  const Json root = scenario(
      R"("nodes": 3, "gpus_per_node": 4, "inter": {"latency_us": 50, "bandwidth_gbps": 40},
         "intra": {"latency_us": 5, "bandwidth_gbps": 100})",
      R"([{"name": "l0.w", "shape": [300000], "backward_us": 20},
          {"name": "l1.w", "shape": [1000000], "backward_us": 700},
          {"name": "l2.w", "shape": [4000000], "backward_us": 150},
          {"name": "l3.w", "shape": [1000000], "backward_us": 3000}])",
      R"([{"name": "one", "fusion": {"rule": "one"}, "cross_step": true, "priority": "layer"},
          {"name": "each", "fusion": {"rule": "none"}, "cross_step": true, "priority": "layer"}])");
  const auto rows = test::studied(root).rows;
  EXPECT_LT(rows[1].metrics.step_time, rows[0].metrics.step_time);
  EXPECT_LE(rows[0].metrics.lower_bound, rows[1].metrics.step_time * (1 + 1e-9));
}

// The host's own work goes on while the step before is still exchanged.
TEST(LowerBound, WorkOfTheHostIsNoPartOfAWayAcrossSteps) {
  for (const std::string exchange : {"all_reduce", "decoupled", "sharded"}) {
    for (const bool across : {false, true}) {
      const Json root = scenario(
          R"("nodes": 4, "gpus_per_node": 1, "inter": {"latency_us": 20, "bandwidth_gbps": 1},
             "device": {"data_parallel_overhead_us": 5000})",
          R"([{"name": "l0.w", "shape": [262144], "backward_us": 0}])",
          R"([{"name": "s", "exchange": ")" + exchange + R"(", "cross_step": )" +
              (across ? "true" : "false") + "}]");
      const Metrics metrics = metrics_of(root);
      EXPECT_LE(metrics.lower_bound, metrics.step_time * (1 + 1e-9)) << exchange << across;
      EXPECT_GE(metrics.lower_bound, 0.5 * metrics.step_time) << exchange << across;
    }
  }
}

// Computation lengthens the gather that a pass waits for: that is still the same gather, and over
// before its gradient is.
TEST(LowerBound, ALengthenedGatherIsCountedOnce) {
  const auto bound = [](const std::string& slowdown) {
    const Json root = scenario(
        R"("nodes": 2, "gpus_per_node": 1, "inter": {"latency_us": 1, "bandwidth_gbps": 10},
           "device": {"overlap_slowdown": )" +
            slowdown + "}",
        R"([{"name": "b.w", "shape": [1000, 1200], "backward_us": 3000},
            {"name": "a.w", "shape": [1000, 1200], "backward_us": 10}])",
        R"([{"name": "s", "dialect": "deepspeed", "config": {"zero_optimization": {
              "stage": 3, "reduce_bucket_size": 1000000, "stage3_prefetch_bucket_size": 1000000,
              "stage3_max_reuse_distance": 0, "stage3_param_persistence_threshold": 0}}}])");
    return metrics_of(root).lower_bound;
  };
  EXPECT_DOUBLE_EQ(bound("0.19"), bound("0"));
}

TEST(LowerBound, IsNotAboveTheModelOnRandomScenarios) {
  int close = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    const Json root = test::random_small_scenario(seed, 32);
    const Metrics metrics = metrics_of(root);
    ASSERT_LE(metrics.lower_bound, metrics.step_time * (1 + 1e-7)) << seed << ": " << root.dump();
    close += metrics.lower_bound > 0.99 * metrics.step_time ? 1 : 0;
  }
  EXPECT_GT(close, 300) << "a bound that nobody comes near says little";
}

// Message by message too, where a collective may be some percent faster than its closed form.
TEST(LowerBound, IsNotAboveTheSimulationOnRandomScenarios) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Json root = test::random_small_scenario(seed, 24);
    for (const std::string granularity : {"merged", "step"}) {
      root["simulation"]["grain"] = granularity;
      const Metrics metrics = metrics_of(root, sim::make_sim_executor);
      EXPECT_LE(metrics.lower_bound, metrics.step_time * (1 + 1e-6))
          << seed << ", " << granularity << ": " << root.dump();
    }
  }
}

// What it says of one way to fuse holds for all others, and for any number of streams.
TEST(LowerBound, IsBelowWhateverIsFusedOtherwise) {
  const Json fusions = Json::parse(
      R"([{"rule": "none"}, {"rule": "one"}, {"rule": "layer"}, {"rule": "count", "count": 2}])");
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Json root = test::random_small_scenario(seed, 24);
    const Json strategy = root["strategies"][0];
    root["strategies"] = Json::array();
    for (const Json& fusion : fusions) {
      if (strategy.contains("partition_mb") && fusion["rule"] != "none") continue;
      for (const int streams : {1, 3}) {
        Json other = strategy;
        other["name"] = std::to_string(root["strategies"].size());
        other["fusion"] = fusion;
        if (strategy.value("overlap", true)) other["streams"] = streams;
        root["strategies"].push_back(other);
      }
    }
    Seconds bound = 0;
    Seconds fastest = 1e9;
    for (const auto& row : test::studied(root).rows) {
      bound = std::max(bound, row.metrics.lower_bound);
      fastest = std::min(fastest, row.metrics.step_time);
    }
    EXPECT_LE(bound, fastest * (1 + 1e-7)) << seed << ": " << root.dump();
  }
}

}  // namespace
}  // namespace syncline::measure
