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
#include "tests/support/random_scenario.h"

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

TEST(Slowed, WhatEachLosesIsCountedWhereItIsLost) {
  const Scenario scenario = two_gradients(0.25, 10);
  const Seconds exchange = exchange_of(scenario);
  collective::PriceBook book(scenario.cluster);
  const auto executor = make_model_executor({scenario.cluster, {}, 1});
  const auto metrics =
      measure::price_strategy(scenario, scenario.strategies.front(), *executor, book).metrics;
  EXPECT_NEAR(metrics.compute, 0.026 + 0.2 * 1.25 * exchange, 1e-9);
  EXPECT_NEAR(metrics.communication, 2.25 * exchange, 1e-9);
  EXPECT_NEAR(metrics.exposed, exchange, 1e-9);
  EXPECT_NEAR(metrics.compute + metrics.exposed, metrics.step_time, 1e-9);
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

// The most urgent bucket first: the pass up to a bucket loses to what was sent before it.
TEST(Slowed, ByPriorityLikeInOrder) {
  for (const double gbps : {0.1, 10.0}) {
    const Seconds in_order = modelled(two_gradients(0.25, gbps));
    EXPECT_NEAR(modelled(two_gradients(0.25, gbps, R"(, "priority": "layer")")), in_order, 1e-9);
  }
}

// Parameters that are gathered anew for the backward pass: the first bucket's while the pass waits
// for them, the second's beside the first one's pass, the last one's never.
TEST(Slowed, ParametersGatheredBesideThePassCostTheirShare) {
  const auto scenario = [](double slowdown, bool regather) {
    Scenario made = two_gradients(slowdown, 10, R"(, "exchange": "sharded")");
    Tensor third = made.workload.tensors.back();
    third.name = "c";
    made.workload.tensors.push_back(third);
    made.strategies.front().regather = regather;
    return made;
  };
  const auto lost = [&](bool regather) {
    return modelled(scenario(0.25, regather)) - modelled(scenario(0, regather));
  };
  const Scenario plain = scenario(0, false);
  collective::PriceBook book(plain.cluster);
  Seconds gather = 0;
  for (const auto& op :
       plan::make_plan(plain.workload, plain.cluster, plain.strategies.front()).ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr || collective->kind != collective::CollectiveKind::kAllGather)
      continue;
    gather = book.time(*collective);
  }
  ASSERT_GT(gather, 0);
  EXPECT_NEAR(lost(true) - lost(false), 0.25 * gather, 1e-9);
}

// What may be run beside computation in any form takes no less time where both lose more. Where
// streams share links, one that waits leaves its part to the others, so that what the update waits
// for may come in earlier.
TEST(Slowed, NoStrategyGetsFasterBySlowingDown) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Json root = test::random_small_scenario(seed, 16);
    root["cluster"]["library"] = "links";
    const bool shared = root["strategies"][0].value("streams", 1) > 1;
    const double slack = shared ? 0.1 : 1e-9;
    Seconds before = 0;
    for (const double slowdown : {0.0, 0.1, 0.3, 0.6, 1.0}) {
      root["cluster"]["device"]["overlap_slowdown"] = slowdown;
      const Seconds step =
          modelled(input::parse_scenario(input::document_from_text("r.json", root.dump())));
      EXPECT_GE(step, before * (1 - slack))
          << seed << " at " << slowdown << ": " << root["strategies"].dump();
      before = step;
    }
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
