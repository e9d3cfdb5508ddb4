// Steps that overlap: the next forward pass waits layer by layer for its parameters. Small cases by
// hand, closed forms, bounds, and the same answer from every executor.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "core/metrics.h"
#include "core/metrics/bound.h"
#include "core/plan/forward_pass.h"
#include "core/sim/sim_executor.h"
#include "formats/input/document.h"
#include "tests/plan/planned.h"
#include "tests/support/expect.h"
#include "tests/support/plans.h"

namespace syncline::plan {
namespace {

using test::shipped_workload;
using test::tensor_of;
using Exchange = Strategy::Exchange;
using Priority = Strategy::Priority;

// No latency; an all-reduce between the two takes a second a GB.
Cluster two_nodes() {
  Cluster cluster = flat_cluster(2);
  cluster.tiers[0].latency = 0;
  cluster.tiers[0].bandwidth = 1e9;
  return cluster;
}

// Two layers, the last one first; forward and backward of each take 1 ms, their all-reduces 3 and
// 1 ms.
Workload two_layers() {
  Workload workload;
  workload.forward = 2e-3;
  workload.tensors = {tensor_of("last.w", {750000}), tensor_of("first.w", {250000})};
  for (auto& tensor : workload.tensors) tensor.backward = 1e-3;
  return workload;
}

measure::Metrics measured(const Workload& workload, const Cluster& cluster,
                          const Strategy& strategy, run::Executor& executor, int warmup = 8) {
  collective::CostCache cache(cluster);
  const Plan plan = make_plan(workload, cluster, strategy);
  const run::Outcome outcome = executor.run(plan, {}, 2 * warmup);
  measure::Metrics metrics = measure::measure(plan, workload, outcome.timeline, warmup, cache);
  metrics.lower_bound = measure::lower_bound(plan, workload, cache);
  return metrics;
}

measure::Metrics modelled(const Workload& workload, const Cluster& cluster,
                          const Strategy& strategy) {
  const auto model = run::make_model_executor({cluster, {}, 1});
  return measured(workload, cluster, strategy, *model);
}

Strategy crossing(Exchange exchange = Exchange::kAllReduce) {
  Strategy strategy = exchanging(exchange);
  strategy.cross_step = true;
  strategy.update = Strategy::Update::kPerBucket;
  return strategy;
}

Strategy by_layer(Bytes partition = 0) {
  Strategy strategy = crossing();
  strategy.priority = Priority::kLayer;
  strategy.partition = partition;
  return strategy;
}

TEST(CrossStep, MatchesAHandComputedExample) {
  const auto step = [](const Strategy& strategy) {
    return modelled(two_layers(), two_nodes(), strategy).step_time;
  };
  // Forward 0-2, backward 2-4, all-reduces 3-6 and 6-7.
  EXPECT_NEAR(step({}), 7e-3, 1e-9);
  // The first layer's all-reduce is the last one: nothing can begin before it.
  EXPECT_NEAR(step(crossing()), 7e-3, 1e-9);
  // Priority alone comes too late: the large one is under way when the urgent one is ready.
  EXPECT_NEAR(step(by_layer()), 7e-3, 1e-9);
  // In parts of 1 ms the first layer's goes second (4-5); its forward pass is 5-6, the last layer's
  // waits for the third part until 7, backward 8-10, and the next first layer is in at 11.
  EXPECT_NEAR(step(by_layer(1000000)), 6e-3, 1e-9);
  // Halves of 1.5 and 0.5 ms: scattered 3-5, gathered first layer first 5-5.5 and 5.5-7.
  EXPECT_NEAR(step(crossing(Exchange::kDecoupled)), 6e-3, 1e-9);
  // 6 ms is what no strategy beats: the last layer's forward and backward pass, then everything.
  EXPECT_NEAR(modelled(two_layers(), two_nodes(), by_layer(1000000)).lower_bound, 6e-3, 1e-9);
}

// Operations by stream, with those that each one awaits.
std::string listed(const Plan& plan, const Workload& workload) {
  std::string text;
  for (const Op& op : plan.ops) {
    text += std::to_string(op.stream) + " " + describe(op, plan, workload);
    for (const OpId id : op.after) text += ", after " + std::to_string(id);
    for (const OpId id : op.after_previous) text += ", after last " + std::to_string(id);
    text += "\n";
  }
  return text;
}

// The example of step_plan.cc.
TEST(CrossStep, OperationsOfTwoLayersByHand) {
  Workload workload = two_layers();
  workload.update = 4e-3;
  EXPECT_EQ(listed(make_plan(workload, two_nodes(), {}), workload),
            "0 forward\n"
            "0 backward last.w\n"
            "1 all_reduce bucket 0, after 1\n"
            "0 backward first.w\n"
            "1 all_reduce bucket 1, after 3\n"
            "0 update, after 2, after 4\n");
  EXPECT_EQ(listed(make_plan(workload, two_nodes(), crossing(Exchange::kDecoupled)), workload),
            "0 update first.w, after last 8\n"
            "0 forward first.w\n"
            "0 update last.w, after last 9\n"
            "0 forward last.w\n"
            "0 backward last.w\n"
            "1 reduce_scatter bucket 0, after 4\n"
            "0 backward first.w\n"
            "1 reduce_scatter bucket 1, after 6\n"
            "1 all_gather bucket 1\n"
            "1 all_gather bucket 0\n");
}

TEST(CrossStep, CreditThatIsHandedOverCannotBeOvertaken) {
  const Workload workload = two_layers();
  Strategy strategy = by_layer(1000000);
  for (const auto& [credit, step] : {std::pair{3000000, 7e-3}, {1000000, 6e-3}}) {
    strategy.credit = credit;  // first all three parts go at once
    EXPECT_NEAR(modelled(workload, two_nodes(), strategy).step_time, step, 1e-9);
  }
}

TEST(CrossStep, EachLayersUpdateComesBeforeItsForwardPass) {
  Workload workload = two_layers();
  workload.update = 4e-3;  // 3 ms of the last layer, 1 ms of the first
  const Plan plan = make_plan(workload, two_nodes(), by_layer(1000000));
  ASSERT_GE(plan.ops.size(), 4u);
  const Phase phases[] = {Phase::kUpdate, Phase::kForward, Phase::kUpdate, Phase::kForward};
  const double times[] = {1e-3, 1e-3, 3e-3, 1e-3};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& compute = std::get<Compute>(plan.ops[i].work);
    EXPECT_EQ(compute.phase, phases[i]) << i;
    EXPECT_NEAR(compute.seconds, times[i], 1e-12) << i;
  }
  // Two buckets' last collectives: the first layer's one, the last layer's three parts.
  EXPECT_EQ(plan.ops[0].after_previous.size(), 1u);
  EXPECT_EQ(plan.ops[2].after_previous.size(), 3u);
  EXPECT_EQ(plan.buckets.size(), 4u);
  EXPECT_EQ(plan.buckets[1].first, 250000);
}

TEST(CrossStep, ForwardIsSharedOutLikeBackwardUnlessTheWorkloadSaysOtherwise) {
  Workload workload = two_layers();
  workload.tensors[0].backward = 3e-3;
  auto layers = forward_layers(workload);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].first, 1);
  EXPECT_NEAR(layers[0].seconds, 0.5e-3, 1e-12);
  EXPECT_NEAR(layers[1].seconds, 1.5e-3, 1e-12);
  workload.tensors[0].forward = 1;
  workload.tensors[1].forward = 4;
  layers = forward_layers(workload);
  EXPECT_NEAR(layers[0].seconds, 1.6e-3, 1e-12);
  // Gradients of one layer are one layer.
  workload.tensors.push_back(tensor_of("first.b", {10}));
  EXPECT_EQ(forward_layers(workload).size(), 2u);
}

// With equal layers and a network that is always busy from the first gradient on, DeAR saves the
// forward pass of all layers but the last: WFBP takes L f + b + C, DeAR f + b + C.
TEST(CrossStep, DearSavesTheForwardPassOnTenGigabit) {
  constexpr int kLayers = 8;
  Workload workload;
  workload.forward = kLayers * 1e-3;
  for (int i = 0; i < kLayers; ++i) {
    workload.tensors.push_back(tensor_of("layer" + std::to_string(i) + ".w", {1000000}));
    workload.tensors.back().backward = 2e-3;
  }
  Cluster cluster = flat_cluster(16);
  cluster.tiers[0].latency = 0;
  const double exchange = 2 * 15 / 16.0 * 4e6 / 1.25e9;  // 6 ms a layer
  const Seconds wfbp = modelled(workload, cluster, {}).step_time;
  const Seconds dear = modelled(workload, cluster, crossing(Exchange::kDecoupled)).step_time;
  EXPECT_NEAR(wfbp, kLayers * 1e-3 + 2e-3 + kLayers * exchange, 1e-9);
  EXPECT_NEAR(dear, 1e-3 + 2e-3 + kLayers * exchange, 1e-9);
  EXPECT_NEAR(modelled(workload, cluster, crossing(Exchange::kDecoupled)).lower_bound, dear, 1e-9);
}

TEST(CrossStep, SendsTheSameBytes) {
  const Workload workload = shipped_workload("resnet50_v100.json");
  const Cluster cluster = flat_cluster(16);
  const double whole = modelled(workload, cluster, {}).bytes_on_wire;
  for (const Strategy& strategy :
       {crossing(Exchange::kDecoupled), crossing(Exchange::kSharded), by_layer(4000000)}) {
    EXPECT_NEAR(modelled(workload, cluster, strategy).bytes_on_wire / whole, 1, 1e-4);
  }
}

TEST(CrossStep, ShardedRanksUpdateTheirShare) {
  Workload workload = two_layers();
  workload.update = 4e-3;
  Strategy strategy = crossing(Exchange::kSharded);
  strategy.update = Strategy::Update::kAfterAll;
  const Plan plan = make_plan(workload, two_nodes(), strategy);
  std::vector<std::string> kinds;
  for (const auto& op : plan.ops) {
    if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
      kinds.emplace_back(collective::to_string(collective->kind));
    } else if (compute_of(op).phase == Phase::kUpdate) {
      kinds.emplace_back("update");
    }
  }
  EXPECT_NEAR(seconds_of_phase(plan, Phase::kUpdate), 2e-3, 1e-12);
  EXPECT_EQ(kinds, (std::vector<std::string>{"reduce_scatter", "reduce_scatter", "update",
                                             "all_gather", "all_gather"}));
  // Scattered 3-5, updated 5-7, gathered 7-7.5 and 7.5-9: forward 7.5-8.5 and 9-10, backward to 12;
  // the next first layer is in at 15.5.
  EXPECT_NEAR(modelled(workload, two_nodes(), strategy).step_time, 8e-3, 1e-9);
}

// ---- the same answer everywhere -----------------------------------------------------------------

Workload random_workload(std::mt19937& random) {
  Workload workload;
  workload.forward = 1e-3 * static_cast<double>(1 + random() % 20);
  const int count = 2 + static_cast<int>(random() % 10);
  for (int i = 0; i < count; ++i) {
    const std::string layer = "layer" + std::to_string(i / 2);
    workload.tensors.push_back(tensor_of(layer + ".p" + std::to_string(i),
                                         {static_cast<std::int64_t>(1 + random() % 400000)}));
    workload.tensors.back().backward = 1e-4 * static_cast<double>(random() % 40);
  }
  return workload;
}

std::vector<Strategy> crossing_strategies(std::mt19937& random) {
  std::vector<Strategy> list{crossing(), by_layer(), by_layer(200000),
                             crossing(Exchange::kDecoupled), crossing(Exchange::kSharded)};
  list[2].credit = 500000;
  list[4].update = Strategy::Update::kAfterAll;
  for (auto& strategy : list) {
    if (strategy.partition == 0 && random() % 2 == 0) {
      strategy.fusion.rule = Fusion::Rule::kSize;
      strategy.fusion.size = 1 << 19;
      strategy.fusion.order =
          random() % 2 == 0 ? Fusion::Order::kForward : Fusion::Order::kBackward;
    }
    strategy.streams = 1 + static_cast<int>(random() % 2);
  }
  return list;
}

TEST(CrossStep, NeverBeatsTheLowerBoundNorLosesToWaiting) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const Workload workload = random_workload(random);
    Cluster cluster = flat_cluster(2 + static_cast<int>(random() % 6));
    cluster.tiers[0].latency = 1e-5 * static_cast<double>(random() % 10);
    for (Strategy strategy : crossing_strategies(random)) {
      const measure::Metrics crossed = modelled(workload, cluster, strategy);
      EXPECT_GE(crossed.step_time, crossed.lower_bound * (1 - 1e-9)) << round;
      // On one stream, whose order is the same, not waiting for the rest costs nothing.
      if (strategy.streams > 1) continue;
      strategy.cross_step = false;
      EXPECT_LE(crossed.step_time, modelled(workload, cluster, strategy).step_time * (1 + 1e-9))
          << round;
    }
  }
}

TEST(CrossStep, SteadyAfterTheWarmUp) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    const Workload workload = random_workload(random);
    const Cluster cluster = flat_cluster(4);
    for (const Strategy& strategy : crossing_strategies(random)) {
      const auto model = run::make_model_executor({cluster, {}, 1});
      const Seconds few = measured(workload, cluster, strategy, *model, 8).step_time;
      const Seconds many = measured(workload, cluster, strategy, *model, 64).step_time;
      EXPECT_NEAR(few / many, 1, 1e-6) << round;
    }
  }
}

TEST(CrossStep, ModelAndSimulationAgree) {
  std::mt19937 random(23);
  for (int round = 0; round < 3; ++round) {
    const Workload workload = random_workload(random);
    const Cluster cluster = flat_cluster(4);
    for (Strategy strategy : crossing_strategies(random)) {
      strategy.streams = 1;
      const Seconds model = modelled(workload, cluster, strategy).step_time;
      for (const auto granularity :
           {Simulation::Granularity::kMerged, Simulation::Granularity::kStep}) {
        Simulation simulation;
        simulation.granularity = granularity;
        const auto sim = sim::make_sim_executor({cluster, simulation, 1});
        EXPECT_NEAR(measured(workload, cluster, strategy, *sim, 3).step_time / model, 1, 1e-3);
      }
    }
  }
}

TEST(CrossStep, ValuesAreThoseOfTheDenseAllReduce) {
  std::mt19937 random(31);
  for (const int ranks : {1, 2, 3, 4, 7}) {
    Workload workload;
    workload.tensors = {tensor_of("c.w", {ranks, 33}), tensor_of("b.b", {ranks, 7}),
                        tensor_of("b.w", {ranks, 100}), tensor_of("a.w", {ranks, 5})};
    run::Gradients input(static_cast<std::size_t>(ranks));
    for (auto& rank : input) {
      for (const auto& tensor : workload.tensors) {
        auto& values = rank.emplace_back(static_cast<std::size_t>(tensor.elements));
        for (auto& value : values) value = static_cast<float>(static_cast<int>(random() % 19) - 9);
      }
    }
    const Cluster cluster = flat_cluster(ranks);
    const auto host = run::make_host_executor(workload);
    const run::Gradients dense = host->run(make_plan(workload, cluster, {}), input, 1).gradients;
    Strategy apart = crossing(Exchange::kSharded);
    apart.fusion.rule = Fusion::Rule::kOne;
    apart.gather_groups = {{0, 1}, {2, 3}};
    Strategy partly = crossing(Exchange::kSharded);
    partly.gather_groups = {{2}};
    Strategy fused = crossing(Exchange::kDecoupled);
    fused.fusion.rule = Fusion::Rule::kOne;
    for (const Strategy& strategy :
         {crossing(Exchange::kDecoupled), fused, crossing(Exchange::kSharded), apart, partly,
          by_layer(40), by_layer(99)}) {
      const Plan plan = make_plan(workload, cluster, strategy);
      EXPECT_EQ(host->run(plan, input, 1).gradients, dense) << ranks;
    }
  }
}

// ---- keys ---------------------------------------------------------------------------------------

Scenario scenario_of(const std::string& strategy) {
  return input::parse_scenario(input::document_from_text(
      "cross", R"({"name": "cross", "workload": ")" SYNCLINE_SOURCE_DIR
               R"(/scenarios/workloads/resnet50_v100.json", "cluster": {"name": "c", "nodes": 16,
      "gpus_per_node": 1, "inter": {"latency_us": 20, "bandwidth_gbps": 10}}, "strategies": [)" +
                   strategy + "]}"));
}

Strategy strategy_of(const std::string& keys) {
  return scenario_of(R"({"name": "s", )" + keys + "}").strategies.front();
}

TEST(CrossStep, PresetsAreKeysThatOtherKeysReplace) {
  const Strategy dear = strategy_of(R"("preset": "dear")");
  EXPECT_EQ(dear.exchange, Exchange::kDecoupled);
  EXPECT_TRUE(dear.cross_step);
  EXPECT_EQ(dear.fusion.size, 25 * kMiB);
  EXPECT_EQ(dear.fusion.order, Fusion::Order::kForward);
  EXPECT_EQ(dear.update, Strategy::Update::kPerBucket);
  EXPECT_FALSE(strategy_of(R"("preset": "dear", "cross_step": false)").cross_step);
  const Strategy scheduler = strategy_of(R"("preset": "bytescheduler", "partition_mb": 2)");
  EXPECT_EQ(scheduler.partition, 2 * kMiB);
  EXPECT_EQ(scheduler.credit, 16000000);
  EXPECT_EQ(scheduler.priority, Priority::kLayer);
  EXPECT_EQ(strategy_of(R"("preset": "mg_wfbp")").fusion.rule, Fusion::Rule::kMgWfbp);
}

// DeAR closes a bucket before it would exceed 25 MiB, first layer first, whole layers: the last
// layers are left with a bucket of what remains.
TEST(CrossStep, DearsBucketsAreFormedForward) {
  const Scenario scenario = scenario_of(R"({"name": "s", "preset": "dear"})");
  const Plan plan = make_plan(scenario.workload, scenario.cluster, scenario.strategies.front());
  int last = 160;
  for (auto bucket = plan.buckets.rbegin(); bucket != plan.buckets.rend(); ++bucket) {
    EXPECT_LE(bucket->bytes, 25 * kMiB);
    EXPECT_EQ(bucket->ready, last);
    last -= static_cast<int>(bucket->tensors.size());
  }
  EXPECT_EQ(last, -1);
  EXPECT_EQ(plan.buckets.size(), 5u);
}

TEST(CrossStep, Mistakes) {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {R"("preset": "dare")", "did you mean 'dear'?"},
      {R"("cross_step": true, "update": "after_all")",
       "only with 'per_bucket': each layer's parameters are updated"},
      {R"("cross_step": true, "overlap": false)",
       "cross_step: has no meaning with overlap: false, only with true: without overlap"},
      {R"("cross_step": true, "local_sgd": {"period": 2})", "cannot be combined with local_sgd"},
      {R"("exchange": "decoupled", "hierarchy": {"group_size": 4})",
       "'leaders' does no reduce_scatter"},
      {R"("exchange": "sharded", "compression": {"codec": "fp16"})", "in full"},
      {R"("exchange": "decoupled", "algorithm": "double_binary_tree")", "reduce_scatter"},
      {R"("credit_mb": 4)", "with priority 'ready', only with 'layer'"},
      {R"("fusion": {"rule": "one", "order": "forward"})", "no meaning with rule 'one'"},
      {R"("local_sgd": {"period": 2, "subgroup": 3})", "expected a divisor of the 16"},
  };
  for (const auto& [keys, part] : mistakes) {
    const std::string why = test::input_error([&keys = keys] { strategy_of(keys); });
    EXPECT_NE(why.find(part), std::string::npos) << keys << "\n" << why;
  }
}

}  // namespace
}  // namespace syncline::plan
