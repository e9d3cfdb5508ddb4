// Gradient accumulation against its closed form: every micro-batch but the last is computation that
// hides nothing.
#include <gtest/gtest.h>

#include <cmath>

#include <string>

#include "tests/support/full_scenario.h"
#include "tests/support/random_scenario.h"
#include "tests/support/studies.h"

namespace syncline::measure {
namespace {

Metrics evaluated(const Json& root) { return test::studied(root).rows.front().metrics; }

Json with_micro_batches(Json root, int count) {
  root["workload"]["micro_batches"] = count;
  return root;
}

// 2 ms forward, 3 ms backward, 1 ms update; 25 MB at 1 Gbit/s from one of two nodes to the other
// and back: 200 ms.
TEST(MicroBatches, MatchesAHandComputedExample) {
  const Json root = Json::parse(R"({"name": "m",
      "workload": {"name": "w", "batch": 6, "forward_ms": 2, "update_ms": 1,
                   "tensors": [{"name": "l.w", "shape": [6250000], "backward_us": 3000}]},
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,
                  "inter": {"latency_us": 0, "bandwidth_gbps": 1}},
      "strategies": [{"name": "s"}]})");
  const Metrics one = evaluated(root);
  EXPECT_NEAR(one.step_time, 0.206, 1e-9);
  const Metrics eight = evaluated(with_micro_batches(root, 8));
  EXPECT_NEAR(eight.step_time, 0.206 + 7 * 0.005, 1e-9);
  EXPECT_NEAR(eight.compute, 8 * 0.005 + 0.001, 1e-9);
  EXPECT_NEAR(eight.exposed, one.exposed, 1e-9);
  EXPECT_EQ(eight.bytes_on_wire, one.bytes_on_wire);
  EXPECT_EQ(eight.collectives, one.collectives);
  EXPECT_NEAR(eight.throughput, 8 * 6 * 2 / eight.step_time, 1e-6);
}

// Samples that nobody counted are none a second, in one phase of a training and over several.
TEST(MicroBatches, WithoutABatchThereIsNoThroughput) {
  Json root = Json::parse(R"({"name": "m",
      "workload": {"name": "w", "forward_ms": 2,
                   "tensors": [{"name": "l.w", "shape": [1000], "backward_us": 3000}]},
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,
                  "inter": {"latency_us": 0, "bandwidth_gbps": 1}},
      "strategies": [{"name": "s", "local_sgd": {"period": 2, "begin_step": 3}}]})");
  for (const bool training : {false, true}) {
    if (training) root["training"] = {{"steps", 9}};
    root["workload"].erase("batch");
    const Metrics unknown = evaluated(root);
    EXPECT_TRUE(std::isnan(unknown.throughput)) << training;
    root["workload"]["batch"] = 1;
    const Metrics one = evaluated(root);
    EXPECT_EQ(one.step_time, unknown.step_time) << training;
    EXPECT_DOUBLE_EQ(one.throughput, 2 / one.step_time) << training;
  }
}

// Plain passes and one step; where steps overlap or gradients wait for ticks, no more than that.
TEST(MicroBatches, ArePlainPassesAndOneStep) {
  int exact = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    Json root = test::random_small_scenario(seed, 16);
    if (root["cluster"].contains("jitter")) continue;
    const int count = 2 + static_cast<int>(seed % 4);
    const Scenario scenario = test::parsed(root);
    const Strategy& strategy = scenario.strategies.front();
    const Seconds pass = (scenario.workload.forward + backward_time(scenario.workload)) *
                         (1 + scenario.cluster.device.data_parallel_slowdown);
    const Metrics one = evaluated(root);
    const Metrics all = evaluated(with_micro_batches(root, count));
    const Seconds sum = one.step_time + (count - 1) * pass;
    ASSERT_LE(all.lower_bound, all.step_time * (1 + 1e-7)) << seed << ": " << root.dump();
    ASSERT_NEAR(all.compute, one.compute + (count - 1) * pass, 1e-9 * sum) << seed;
    if (strategy.fusion.cycle > 0) continue;
    ASSERT_LE(all.step_time, sum * (1 + 1e-9)) << seed << ": " << root.dump();
    // Priorities are decided by the times from the backward pass's begin: nothing moves.
    if (strategy.cross_step) continue;
    ASSERT_NEAR(all.step_time, sum, 1e-9 * sum) << seed << ": " << root.dump();
    ++exact;
  }
  EXPECT_GT(exact, 200);
}

}  // namespace
}  // namespace syncline::measure
