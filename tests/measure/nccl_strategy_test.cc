// Strategies whose algorithm is `nccl`, from JSON to metrics.
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

#include "core/collective/nccl.h"
#include "core/executor.h"
#include "core/metrics/bound.h"
#include "core/plan.h"
#include "core/sim/sim_executor.h"
#include "studies/study/study.h"
#include "tests/support/full_scenario.h"
#include "tests/support/text.h"

namespace syncline::measure {
namespace {

// Gradients of a few KB to 64 MB on four nodes.
Scenario scenario_with(const std::string& cluster_keys, const std::string& strategy_keys) {
  return test::parsed(Json::parse(R"({
    "name": "n", "workload": {"name": "w", "batch": 8, "forward_ms": 4, "tensors": [
      {"name": "a", "shape": [4096, 4096], "backward_us": 3000},
      {"name": "b", "shape": [16], "backward_us": 10},
      {"name": "c", "shape": [512, 1024], "backward_us": 900},
      {"name": "d", "shape": [64, 64], "backward_us": 40},
      {"name": "e", "shape": [2048, 1024], "backward_us": 1200}]},
    "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 2, "device": {"name": "A100"},
                "intra": {"latency_us": 3, "bandwidth_gbps": 200},
                "inter": {"latency_us": 15, "bandwidth_gbps": 10})" +
                                  cluster_keys + R"(},
    "strategies": [{"name": "s", "algorithm": "nccl")" +
                                  strategy_keys + "}]}"));
}

TEST(NcclStrategy, SmallGradientsGoByTreesLargeOnesByRings) {
  const Scenario s = scenario_with("", "");
  const plan::Plan plan = plan::make_plan(s.workload, s.cluster, s.strategies[0], {});
  std::set<collective::NcclAlgorithm> algorithms;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr) continue;
    ASSERT_TRUE(collective->nccl.has_value());
    algorithms.insert(collective->nccl->algorithm);
  }
  EXPECT_TRUE(algorithms.contains(collective::NcclAlgorithm::kTree));
  EXPECT_TRUE(algorithms.contains(collective::NcclAlgorithm::kRing));
}

// No fusion, no number of streams and no grouping goes below the bound; model and simulation agree.
TEST(NcclStrategy, TheLowerBoundIsValidAndTheSimulationAgrees) {
  const std::string fusions[] = {"", R"(, "fusion": {"rule": "one"})",
                                 R"(, "fusion": {"rule": "size", "size_mb": 3})"};
  const std::string hierarchies[] = {"", R"(, "hierarchy": {"form": "sharded"})",
                                     R"(, "hierarchy": {"form": "leaders"})"};
  for (const auto& fusion : fusions) {
    for (const auto& hierarchy : hierarchies) {
      for (const int streams : {1, 2, 3}) {
        const std::string keys = fusion + hierarchy + R"(, "streams": )" + std::to_string(streams);
        const Scenario s = scenario_with("", keys);
        collective::CostCache cache(s.cluster);
        auto model = run::make_model_executor({s.cluster, {}, 1});
        const Metrics metrics = evaluate_strategy(s, s.strategies[0], *model, cache).metrics;
        const Seconds bound =
            lower_bound_of(s, s.strategies[0], std::numeric_limits<double>::infinity(), cache);
        EXPECT_GT(bound, 0);
        EXPECT_LE(bound, metrics.step_time * (1 + 1e-9)) << keys;
        auto sim = sim::make_sim_executor({s.cluster, {}, 1});
        const Metrics simulated = evaluate_strategy(s, s.strategies[0], *sim, cache).metrics;
        EXPECT_NEAR(simulated.step_time / metrics.step_time, 1, streams == 1 ? 1e-3 : 0.03) << keys;
      }
    }
  }
}

TEST(NcclStrategy, HintsAreReadAndWrongOnesNamed) {
  const Scenario s = scenario_with(R"(, "nccl": {"cpu": "amd", "compute_capability": 70,
      "nvlink": false, "nvswitch": false, "gpu_direct": true, "channels": 3,
      "channel_intra_gbytes_per_s": 5, "channel_inter_gbytes_per_s": 0.5, "tree": "plain"})",
                                   "");
  const collective::NcclTopology t =
      collective::nccl_topology(s.cluster, collective::world_group(8));
  EXPECT_EQ(t.cpu, NcclHints::Cpu::kAmd);
  EXPECT_EQ(t.least_capability, 70);
  EXPECT_EQ(t.ring.channels, 3);
  EXPECT_DOUBLE_EQ(t.tree.intra, 5e9);
  EXPECT_DOUBLE_EQ(t.ring.inter, 0.5e9);
  EXPECT_EQ(t.ring.path_inter, collective::NcclPath::kPxb);
  EXPECT_EQ(t.tree.pattern, collective::NcclPattern::kTree);

  const std::pair<std::string, std::string> mistakes[] = {
      {R"("cpu": "arm")", "cluster.nccl.cpu"},
      {R"("channels": 0)", "cluster.nccl.channels"},
      {R"("chanels": 2)", "channels"},
      {R"("channel_inter_gbytes_per_s": 0)", "cluster.nccl"}};
  for (const auto& [keys, told] : mistakes) {
    const auto body = [&, keys = keys] { scenario_with(", \"nccl\": {" + keys + "}", ""); };
    EXPECT_TRUE(test::contains(test::input_error(body), told)) << keys;
  }
}

}  // namespace
}  // namespace syncline::measure
