// Computation beside a collective takes longer: closed forms, laws, and the simulation's agreement.
#include "core/run/slowed.h"

#include <gtest/gtest.h>

#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/price_strategy.h"
#include "core/plan/planner.h"
#include "core/run/model_executor.h"
#include "core/scenario/overlap.h"
#include "sim/sim_executor.h"

namespace syncline::run {
namespace {

// Two gradients, 10 ms of backward each, over a network of so many Gbit/s.
Scenario two_gradients(double slowdown, double gbps, const std::string& strategy = "",
                       const std::string& more = "") {
  return input::parse_scenario(input::document_from_text("slowed.json", R"({"name": "s",
      "workload": {"name": "w", "forward_ms": 5, "update_ms": 1, "tensors": [
        {"name": "b", "shape": [1000000], "backward_us": 10000},
        {"name": "a", "shape": [1000000], "backward_us": 10000}]},
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1, "library": "links",
        "device": {"overlap_slowdown": )" + std::to_string(slowdown) + more +
                                                                            R"(},
        "inter": {"latency_us": 10, "bandwidth_gbps": )" + std::to_string(gbps) +
                                                                            R"(}},
      "strategies": [{"name": "alone")" + strategy + "}]}"));
}

Seconds step_of(const Scenario& scenario, Executor& executor) {
  collective::PriceBook book(scenario.cluster);
  return measure::price_strategy(scenario, scenario.strategies.front(), executor, book)
      .metrics.step_time;
}

Seconds modelled(const Scenario& scenario) {
  return step_of(scenario, *make_model_executor({scenario.cluster, {}, 1}));
}

Seconds exchange_of(const Scenario& scenario) {
  collective::PriceBook book(scenario.cluster);
  const plan::Plan plan =
      plan::make_plan(scenario.workload, scenario.cluster, scenario.strategies.front());
  for (const auto& op : plan.ops) {
    if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
      return book.time(*collective);
    }
  }
  return 0;
}

TEST(Slowed, AHiddenExchangeCostsItsShare) {
  const Scenario scenario = two_gradients(0.25, 10);
  const Seconds exchange = exchange_of(scenario);
  ASSERT_LT(exchange, 0.010);
  // The first exchange takes a quarter longer beside the second gradient, which loses a fifth of
  // that time; the second runs beside nothing.
  EXPECT_NEAR(modelled(scenario), 0.005 + 0.020 + 0.25 * exchange + exchange + 0.001, 1e-9);
}

TEST(Slowed, NoMoreIsLostThanIsComputedBesideIt) {
  const Scenario scenario = two_gradients(0.25, 0.1);
  const Seconds exchange = exchange_of(scenario);
  ASSERT_GT(exchange, 0.1);
  // The network is the bottleneck: the first exchange is slowed for as long as the 10 ms of
  // computation take beside it, the second follows and runs alone.
  EXPECT_NEAR(modelled(scenario), 0.005 + 0.010 + 2 * exchange + 0.25 * 0.0125 + 0.001, 1e-9);
}

TEST(Slowed, AnExchangeThatBeginsBesideComputationWaitsForAProcessor) {
  const std::string waits = R"(, "overlap_collective_slowdown": 0, "overlap_delay_us": 3000)";
  const Scenario fast = two_gradients(0.25, 10, "", waits);
  const Seconds exchange = exchange_of(fast);
  ASSERT_LT(exchange, 0.005);
  // Hidden: the wait costs nothing, and the computation loses nothing meanwhile.
  EXPECT_NEAR(modelled(fast), 0.005 + 0.020 + 0.2 * exchange + exchange + 0.001, 1e-9);
  const Scenario slow = two_gradients(0.25, 0.1, "", waits);
  EXPECT_NEAR(modelled(slow), 0.005 + 0.010 + 0.003 + 2 * exchange_of(slow) + 0.001, 1e-9);
  // No longer than there is computation.
  const std::string long_wait = R"(, "overlap_collective_slowdown": 0, "overlap_delay_us": 90000)";
  const Scenario late = two_gradients(0, 10, "", long_wait);
  EXPECT_NEAR(modelled(late), 0.005 + 0.020 + 2 * exchange + 0.001, 1e-9);
}

TEST(Slowed, OnlyBesideACollective) {
  const std::string apart = R"(, "overlap": false)";
  EXPECT_EQ(modelled(two_gradients(0, 10, apart)), modelled(two_gradients(0.3, 10, apart)));
  const std::string one = R"(, "fusion": {"rule": "one"})";
  EXPECT_EQ(modelled(two_gradients(0, 10, one)), modelled(two_gradients(0.3, 10, one)));
  Scenario lonely = two_gradients(0.3, 10);
  lonely.cluster.nodes = 1;
  lonely.cluster.tiers.clear();
  EXPECT_FALSE(slows(plan::make_plan(lonely.workload, lonely.cluster, lonely.strategies.front())));
}

TEST(Slowed, GrowsWithTheSlowdownAndTheSimulationAgrees) {
  Seconds before = 0;
  for (const double slowdown : {0.0, 0.1, 0.2, 0.4, 1.0}) {
    const Scenario scenario = two_gradients(slowdown, 10);
    const Seconds step = modelled(scenario);
    EXPECT_GT(step, before);
    before = step;
    const auto simulated = sim::make_sim_executor({scenario.cluster, scenario.simulation, 1});
    EXPECT_NEAR(step_of(scenario, *simulated) / step, 1, 1e-6) << slowdown;
  }
}

TEST(Slowed, IsAssumedWhereNcclExchangesAndNobodySaid) {
  const auto cluster = [](const std::string& keys) {
    return input::parse_scenario(input::document_from_text("c.json", R"({"name": "s",
        "workload": {"name": "w", "tensors": [{"name": "a", "shape": [8]}]},
        "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,
          "inter": {"latency_us": 10, "bandwidth_gbps": 10})" + keys +
                                                                         R"(},
        "strategies": [{"name": "alone"}]})"))
        .cluster;
  };
  const std::string v100 = R"(, "device": {"name": "V100")";
  const auto slowdown = [&](const std::string& keys) {
    return cluster(keys).device.overlap.slowdown;
  };
  EXPECT_EQ(slowdown(""), 0);
  EXPECT_EQ(slowdown(v100 + "}"), overlap_prior(Library::kNccl).likely.slowdown);
  EXPECT_EQ(slowdown(R"(, "library": "gloo")"), overlap_prior(Library::kGloo).likely.slowdown);
  EXPECT_EQ(slowdown(v100 + R"(}, "library": "links")"), 0);
  EXPECT_EQ(slowdown(v100 + R"(, "overlap_slowdown": 0})"), 0);
  EXPECT_EQ(slowdown(v100 + R"(, "data_parallel_slowdown": 0.1})"), 0);
  const Overlap told = cluster(v100 + R"(, "overlap_slowdown": 0.1})").device.overlap;
  EXPECT_EQ(told.collective_slowdown, 0.1);
  EXPECT_EQ(told.delay, 0);
}

}  // namespace
}  // namespace syncline::run
