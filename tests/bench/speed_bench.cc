// The claims of speed, each as one benchmark that anyone can rerun (make bench). The figure to read
// is stated beside each. Simulations run in a child process each; its start is part of the time.

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "core/executor.h"
#include "core/metrics.h"
#include "core/plan.h"
#include "core/sim/sim_executor.h"
#include "formats/input/document.h"
#include "tests/support/fabrics.h"
#include "tests/support/plans.h"

namespace syncline {
namespace {

Scenario scenario_of(int nodes, int gpus, const std::string& strategy) {
  const std::string text = R"({"name": "bench", "workload": ")" SYNCLINE_SOURCE_DIR
                           R"(/scenarios/workloads/resnet50_v100.json", "cluster": {
      "name": "bench", "nodes": )" +
                           std::to_string(nodes) + R"(, "gpus_per_node": )" + std::to_string(gpus) +
                           R"(, "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
      "inter": {"latency_us": 8, "bandwidth_gbps": 100}, "collective_overhead_us": 10},
      "strategies": [)" + strategy +
                           "]}";
  return input::parse_scenario(input::document_from_text("bench", text));
}

const char* const kUnfused = R"({"name": "s"})";
const char* const kFiveBuckets = R"({"name": "s", "fusion": {"rule": "size", "size_mb": 25,
                                     "first_size_mb": 1}})";

// One iteration makes the plan and evaluates three steps of it.
void plan_and_evaluate(benchmark::State& state, const Scenario& s) {
  const auto executor = run::make_model_executor({s.cluster, {}, 1});
  for (auto _ : state) {
    const plan::Plan plan = plan::make_plan(s.workload, s.cluster, s.strategies.front());
    benchmark::DoNotOptimize(executor->run(plan, {}, 3));
  }
  state.counters["plans_per_s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
// Goal: at least 10,000 plans a second on one core, of ResNet-50's 161 gradients, each its own
// bucket.
void model_plan_and_evaluate(benchmark::State& state) {
  plan_and_evaluate(state, scenario_of(static_cast<int>(state.range(0)), 8, kUnfused));
}
BENCHMARK(model_plan_and_evaluate)->Arg(1)->Arg(4)->Arg(128)->Unit(benchmark::kMicrosecond);

void model_two_streams(benchmark::State& state) {
  plan_and_evaluate(state, scenario_of(4, 8, R"({"name": "s", "streams": 2})"));
}
BENCHMARK(model_two_streams)->Unit(benchmark::kMicrosecond);

double children_peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Simulation by(Simulation::Granularity granularity, bool fold) {
  Simulation simulation;
  simulation.granularity = granularity;
  simulation.fold = fold;
  return simulation;
}

// Arguments: nodes, GPUs a node.
void simulate(benchmark::State& state, const char* strategy, const Simulation& simulation) {
  const Scenario s =
      scenario_of(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), strategy);
  const plan::Plan plan = plan::make_plan(s.workload, s.cluster, s.strategies.front());
  for (auto _ : state) {
    const auto executor = sim::make_sim_executor({s.cluster, simulation, 1});
    benchmark::DoNotOptimize(executor->run(plan, {}, 3));
  }
  state.counters["buckets"] = static_cast<double>(plan.buckets.size());
  // The largest child so far: benchmarks are listed from small to large.
  state.counters["child_peak_MB"] = children_peak_mb();
}

// Goals: 161 separate all-reduces on 256 ranks under 0.5 s; 5 buckets on 1,024 ranks under 0.2 s
// and on 4,096 ranks under 0.6 s and 200 MB. Three steps each. The third argument: folded.
void sim_unfused(benchmark::State& state) {
  simulate(state, kUnfused, by(Simulation::Granularity::kMerged, state.range(2) != 0));
}
BENCHMARK(sim_unfused)
    ->Args({256, 1, 1})
    ->Args({32, 8, 1})
    ->Args({256, 1, 0})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void sim_five_buckets(benchmark::State& state) {
  simulate(state, kFiveBuckets, by(Simulation::Granularity::kMerged, state.range(2) != 0));
}
BENCHMARK(sim_five_buckets)
    ->Args({1024, 1, 1})
    ->Args({128, 8, 1})
    ->Args({4096, 1, 1})
    ->Args({512, 8, 1})
    ->Args({4096, 1, 0})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// Goal: the 161 all-reduces on 256 ranks, every message of every round, under 20 s. Three steps.
void sim_step_by_step_unfused(benchmark::State& state) {
  simulate(state, kUnfused, by(Simulation::Granularity::kStep, true));
}
BENCHMARK(sim_step_by_step_unfused)
    ->Args({256, 1})
    ->Args({32, 8})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// Goal: one 100 MiB ring all-reduce on 1,024 nodes scattered over leaves with uplinks 4:1, every
// message of its rounds until they repeat, under 5 s. Arguments: ranks, elements beyond 25 Mi. One
// element more and the chunks differ: rounds never repeat, and each is simulated.
void sim_step_by_step_scattered_ring(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  Cluster cluster = scenario_of(ranks, 1, kUnfused).cluster;
  fabric::LeafSpine shape;
  shape.nodes = ranks;
  shape.nodes_per_leaf = 32;
  shape.spines = 8;
  shape.speed = 12.5e9;
  const fabric::Topology leaves = fabric::leaf_spine(shape);
  cluster = on_fabric(cluster, leaves,
                      fabric::place_nodes(leaves, ranks, fabric::Placement::kScattered, 1));
  const std::int64_t elements = 100 * kMiB / 4 + state.range(1);
  const plan::Plan plan =
      plan_of(ranks, {{1, collective_of(collective::CollectiveKind::kAllReduce, "ring",
                                        collective::world_group(ranks), elements)}});
  for (auto _ : state) {
    const auto executor =
        sim::make_sim_executor({cluster, by(Simulation::Granularity::kStep, true), 1});
    benchmark::DoNotOptimize(executor->run(plan, {}, 1));
  }
}
BENCHMARK(sim_step_by_step_scattered_ring)
    ->Args({256, 0})
    ->Args({256, 1})
    ->Args({1024, 0})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// Goals: one 100 MiB ring all-reduce, every message of every round, on 256 ranks under 0.5 s, on
// 1,024 under 8 s, both folded. Arguments: ranks, folded.
void sim_step_by_step_ring(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const Scenario s = scenario_of(ranks, 1, kUnfused);
  const plan::Plan plan =
      plan_of(ranks, {{1, collective_of(collective::CollectiveKind::kAllReduce, "ring",
                                        collective::world_group(ranks), 100 * kMiB / 4)}});
  const Simulation simulation = by(Simulation::Granularity::kStep, state.range(1) != 0);
  for (auto _ : state) {
    const auto executor = sim::make_sim_executor({s.cluster, simulation, 1});
    benchmark::DoNotOptimize(executor->run(plan, {}, 1));
  }
  state.counters["child_peak_MB"] = children_peak_mb();
}
BENCHMARK(sim_step_by_step_ring)
    ->Args({64, 1})
    ->Args({256, 1})
    ->Args({1024, 1})
    ->Args({1023, 1})
    ->Args({1024, 0})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace syncline
