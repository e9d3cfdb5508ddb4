// Knobs that go together: each row ends with the right values on every rank, takes the same time in
// the model as in the simulation, and no less than its lower bound.
#include <gtest/gtest.h>

#include <string>

#include "core/cost.h"
#include "core/metrics.h"
#include "core/metrics/bound.h"
#include "core/sim/sim_executor.h"
#include "formats/input/document.h"
#include "tests/plan/planned.h"

namespace syncline::plan {
namespace {

const char* const kTicks = R"("size_mb": 0.005, "close": "before", "cycle_ms": 0.7)";

struct Knobs {
  const char* name;
  std::string knobs;
  std::string fusion = kTicks;
  int micro_batches = 1;
};

std::ostream& operator<<(std::ostream& out, const Knobs& row) { return out << row.name; }

const Knobs kRows[] = {
    {"TicksDecoupled", R"("exchange": "decoupled")"},
    {"TicksSharded", R"("exchange": "sharded")"},
    {"TicksShardedUpdate", R"("exchange": "sharded_update")"},
    {"TicksRegather", R"("exchange": "sharded", "regather": true)"},
    {"TicksGatherGroups", R"("exchange": "sharded", "regather": true, "cross_step": true,
      "gather_groups": [[0, 1], [2], [3, 4, 5]], "kept_groups": 1)"},
    {"TicksCrossStep", R"("cross_step": true)"},
    {"TicksPriority", R"("priority": "layer")"},
    {"TicksPriorityCrossStep", R"("priority": "layer", "cross_step": true, "credit_mb": 0.01)"},
    {"TicksInFlight", R"("in_flight": 1)"},
    {"TicksMicroBatches", R"("each_micro_batch": true)", kTicks, 3},
    {"TicksPartition", R"("partition_mb": 0.001)", R"("rule": "none", "cycle_ms": 0.7)"},
    {"TicksPackedPartition", R"("partition_mb": 0.001)"},
    {"TicksPowerSgd", R"("compression": {"codec": "powersgd"})"},
    {"TicksInGroups", R"("local_sgd": {"period": 2, "subgroup": 2})"},
    {"TicksAfter", "", R"("size_mb": 0.005, "cycle_ms": 0.7)"},
    {"TicksFirstSize", "", R"("size_mb": 0.005, "close": "before", "first_size_mb": 0.001,
      "cycle_ms": 0.7)"},
    {"TicksForward", "", R"("size_mb": 0.005, "close": "before", "order": "forward",
      "cycle_ms": 0.7)"},
    {"TicksByLayer", "", R"("size_mb": 0.005, "close": "before", "by_layer": true,
      "cycle_ms": 0.7)"},
    {"TicksCounted", "", R"("rule": "count", "count": 2, "cycle_ms": 0.7)"},
    {"TicksGroups", "", R"("rule": "groups", "groups": [[0, 3], [1, 2], [4, 5]], "in_turn": true,
      "cycle_ms": 0.7)"},
    {"TicksCuts", "", R"("rule": "none", "cuts": [{"tensor": 0, "at": [100, 500]}],
      "cycle_ms": 0.7)"},
    {"PriorityMicroBatches", R"("priority": "layer", "each_micro_batch": true)",
     R"("rule": "none")", 3},
    {"PriorityInFlight", R"("priority": "layer", "in_flight": 2)", R"("rule": "none")"},
    {"PriorityInFlightParts", R"("priority": "layer", "in_flight": 1, "partition_mb": 0.001,
      "credit_mb": 0.01)",
     R"("rule": "none")"},
    {"PriorityRegather", R"("priority": "layer", "exchange": "sharded", "regather": true)",
     R"("rule": "count", "count": 2)"},
    {"PriorityRegatherCrossStep", R"("priority": "layer", "exchange": "sharded", "regather": true,
      "cross_step": true, "fetches": {"live_elements": 2000, "ahead_elements": 500})",
     R"("rule": "count", "count": 2)"},
    {"CopiesCrossStep", R"("bucket_copies": true, "cross_step": true)",
     R"("rule": "count", "count": 2)"},
    {"CopiesDecoupledCrossStep", R"("bucket_copies": true, "cross_step": true,
      "exchange": "decoupled")",
     R"("rule": "count", "count": 2)"},
    {"CopiesPriority", R"("bucket_copies": true, "priority": "layer", "cross_step": true)",
     R"("rule": "none")"},
    {"PowerSgdPartition", R"("compression": {"codec": "powersgd"}, "partition_mb": 0.0002)",
     R"("rule": "none")"},
    {"BatchedPowerSgdPartition",
     R"("compression": {"codec": "batched_powersgd", "rank": 64}, "partition_mb": 0.0002)",
     R"("rule": "none")"},
    {"PowerSgdCuts", R"("compression": {"codec": "powersgd"})",
     R"("rule": "none", "cuts": [{"tensor": 0, "at": [100]}, {"tensor": 4, "at": [20]}])"},
    {"PowerSgdDecoupled", R"("compression": {"codec": "powersgd"}, "exchange": "decoupled")",
     R"("rule": "none")"},
    {"DgcDecoupled", R"("compression": {"codec": "dgc", "sparsity": [0], "min_elements": 1000},
      "exchange": "decoupled")",
     R"("rule": "one")"},
    {"LeadersShardedUpdate",
     R"("hierarchy": {"form": "leaders", "group_size": 2}, "exchange": "sharded_update")",
     R"("rule": "one")"},
    {"PartsOfLoneGradients", R"("partition_mb": 0.001)", R"("size_mb": 0.003, "close": "before")"},
    {"OneStreamSharded", R"("overlap": false, "exchange": "sharded")", R"("rule": "one")"},
    {"OneStreamDecoupledParts", R"("overlap": false, "exchange": "decoupled",
      "partition_mb": 0.001)",
     R"("rule": "none")"},
    {"BlocksWithoutOuterStep", R"("local_sgd": {"period": 2, "periods": [1, 3]})",
     R"("rule": "one")"},
    {"AcrossLast", R"("hierarchy": {"form": "sharded", "group_size": 2, "across_last": true})",
     R"("rule": "one")"},
};

class CombinedKnobs : public testing::TestWithParam<Knobs> {};

Scenario scenario_of_row(const Knobs& row) {
  const std::string text =
      R"({"name": "combined", "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 1,
          "inter": {"latency_us": 20, "bandwidth_gbps": 1},
          "device": {"memory_gbytes_per_s": 1, "launch_us": 5}},
        "workload": {"name": "w", "batch": 1, "forward_ms": 3, "update_ms": 1,
          "micro_batches": )" +
      std::to_string(row.micro_batches) + R"(, "tensors": [
          {"name": "l2.w", "shape": [48, 40], "backward_us": 900},
          {"name": "l2.b", "shape": [40], "backward_us": 10},
          {"name": "l1.w", "shape": [32, 24], "backward_us": 500},
          {"name": "l1.b", "shape": [24], "backward_us": 10},
          {"name": "l0.w", "shape": [96], "backward_us": 300},
          {"name": "l0.b", "shape": [16, 8], "backward_us": 700}]},
        "strategies": [{"name": "s", "algorithm": "ring", "fusion": {)" +
      row.fusion + "}" + (row.knobs.empty() ? "" : ", ") + row.knobs + "}]}";
  return input::parse_lone_scenario(input::document_from_text("combined.json", text));
}

Scenario scenario_named(const std::string& name) {
  return scenario_of_row(*std::ranges::find(kRows, name, &Knobs::name));
}

// Of rank 1, so that two factors hold them, and whole numbers, whose sums are exact.
run::Gradients gradients_of(const Workload& workload, int ranks) {
  run::Gradients gradients(static_cast<std::size_t>(ranks));
  for (std::size_t r = 0; r < gradients.size(); ++r) {
    for (const Tensor& tensor : workload.tensors) {
      const std::int64_t columns = tensor.shape.back();
      auto& values = gradients[r].emplace_back();
      for (std::int64_t i = 0; i < tensor.elements; ++i) {
        const std::int64_t own = static_cast<std::int64_t>(r) + 1;
        values.push_back(static_cast<float>(own * (1 + i / columns % 7) * (1 + i % columns % 5)));
      }
    }
  }
  return gradients;
}

TEST_P(CombinedKnobs, EndWithTheSumOnEveryRank) {
  const Scenario scenario = scenario_of_row(GetParam());
  const Strategy& strategy = scenario.strategies.front();
  const int ranks = scenario.cluster.ranks();
  const run::Gradients input = gradients_of(scenario.workload, ranks);
  // 1 + 2 + 3 + 4 times the first rank's; each further exchange sums what is alike already.
  float share = 10;
  if (strategy.local_sgd.enabled) share /= static_cast<float>(ranks);
  for (int m = 1; m < GetParam().micro_batches; ++m) share *= static_cast<float>(ranks);
  for (const TrainingPhase& phase : training_phases(strategy, scenario.training)) {
    const Plan plan = make_plan(scenario.workload, scenario.cluster, strategy, phase.point);
    const auto found = run::make_host_executor(scenario.workload)->run(plan, input, 1).gradients;
    for (std::size_t r = 0; r < found.size(); ++r) {
      for (std::size_t t = 0; t < found[r].size(); ++t) {
        for (std::size_t i = 0; i < found[r][t].size(); ++i) {
          const float wanted = share * input[0][t][i];
          ASSERT_NEAR(found[r][t][i], wanted, 1e-4 * wanted)
              << "rank " << r << ", tensor " << t << ", element " << i;
        }
      }
    }
  }
}

TEST_P(CombinedKnobs, TakeTheSameInTheModelAndTheSimulation) {
  const Scenario scenario = scenario_of_row(GetParam());
  const Strategy& strategy = scenario.strategies.front();
  collective::CostCache cache(scenario.cluster);
  const auto step_time = [&](auto make) {
    const auto executor = make({scenario.cluster, scenario.simulation, scenario.seed});
    return measure::evaluate_strategy(scenario, strategy, *executor, cache).metrics.step_time;
  };
  const Seconds model = step_time(run::make_model_executor);
  EXPECT_NEAR(model, step_time(sim::make_sim_executor), 1e-3 * model);
  EXPECT_LE(measure::lower_bound_of(scenario, strategy, 1e9, cache), model * (1 + 1e-7));
}

INSTANTIATE_TEST_SUITE_P(Rows, CombinedKnobs, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

// What changes nothing is said, as nothing is wrong with it.
TEST(CombinedNotes, OnlyAcrossLastChangesNothing) {
  const auto notes = scenario_named("AcrossLast").strategies.front().notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes.front().starts_with("hierarchy.across_last changes nothing here"));
}

// What is left of a cycle is waited for once a bucket is ready, so that what holds the passes up
// holds its release up too: a cycle costs the same on a slow step as on a fast one.
TEST(CombinedTicks, WaitAfterDelaysOfThePasses) {
  for (const char* name : {"TicksRegather", "TicksCrossStep", "TicksInFlight"}) {
    const Scenario scenario = scenario_named(name);
    for (const Op& op :
         make_plan(scenario.workload, scenario.cluster, scenario.strategies.front()).ops) {
      if (reason_of(op.work) != Busy::Reason::kTick) continue;
      EXPECT_LE(seconds_of(op.work), 0.7 * kMillisecond + 1e-12) << name;
      EXPECT_EQ(op.after.size(), 1u) << name;
      EXPECT_TRUE(op.after_previous.empty()) << name;
    }
  }
}

// One stage after the other releases at ticks: each in its own passes.
TEST(CombinedTicks, GoWithAPipeline) {
  const Workload workload = job(pipeline(2, Schedule::k1F1B), 4);
  Cluster cluster;
  cluster.nodes = 4;
  cluster.tiers = {{"inter", 4, 1e-5, 1e9}};
  Strategy strategy;
  const auto step_of = [&] {
    const Plan plan = make_plan(workload, cluster, strategy);
    const auto timeline = run::make_model_executor({cluster, {}, 1})->run(plan, {}, 3).timeline;
    const auto simulated = sim::make_sim_executor({cluster, {}, 1})->run(plan, {}, 3).timeline;
    EXPECT_NEAR(timeline.period_ends.back(), simulated.period_ends.back(),
                1e-2 * timeline.period_ends.back());
    return timeline.period_ends.back();
  };
  const Seconds alone = step_of();
  strategy.fusion.cycle = 10 * kMillisecond;
  const Seconds ticked = step_of();
  EXPECT_GT(ticked, alone);
  EXPECT_LT(ticked, alone + 3 * 2 * strategy.fusion.cycle);
}

}  // namespace
}  // namespace syncline::plan
