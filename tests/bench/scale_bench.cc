// Scale: 65,536 ranks, 8,192 nodes of 8, and ResNet-50's gradients in five buckets. Goals for every
// algorithm, exchange and hierarchy: the model in 0.3 s and 300 MB with the interval that `run`
// adds, the simulation in 0.6 s and 500 MB. One iteration reads the scenario and costs its
// strategy (plan, three steps, metrics, by the model also the interval) in a process of its own,
// whose peak memory is the second figure.

#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <string>

#include "core/cost.h"
#include "core/executor.h"
#include "core/metrics.h"
#include "core/plan.h"
#include "core/sim/sim_executor.h"
#include "formats/input/document.h"
#include "studies/rows/uncertainty.h"

namespace syncline {
namespace {

Scenario scenario_of(const std::string& knobs) {
  const std::string text = R"({"name": "scale", "workload": ")" SYNCLINE_SOURCE_DIR
                           R"(/scenarios/workloads/resnet50_v100.json", "cluster": {
      "name": "scale", "nodes": 8192, "gpus_per_node": 8,
      "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
      "inter": {"latency_us": 8, "bandwidth_gbps": 100}, "collective_overhead_us": 10},
      "strategies": [{"name": "s", "fusion": {"rule": "size", "size_mb": 25, "first_size_mb": 1}, )" +
                           knobs + "}]}";
  return input::parse_scenario(input::document_from_text("scale", text));
}

// The step time, or the end of its interval, so that nothing is left out.
Seconds evaluated(const std::string& knobs, bool simulate) {
  const Scenario s = scenario_of(knobs);
  const plan::Plan plan = plan::make_plan(s.workload, s.cluster, s.strategies.front());
  const run::ExecutorSettings settings{s.cluster, {}, 1};
  const auto executor =
      simulate ? sim::make_sim_executor(settings) : run::make_model_executor(settings);
  collective::CostCache cache(s.cluster);
  const auto outcome = executor->run(plan, {}, 3);
  const Seconds step = measure::measure(plan, s.workload, outcome.timeline, 1, cache).step_time;
  if (simulate) return step;
  return measure::interval_of(step, measure::Uncertainties(s).sensitivity(s.strategies.front()))
      .high;
}

void scale(benchmark::State& state, const std::string& knobs, bool simulate) {
  double peak_mb = 0;
  for (auto _ : state) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        ::_exit(evaluated(knobs, simulate) > 0 ? 0 : 1);
      } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        ::_exit(1);
      }
    }
    int status = 0;
    rusage usage{};
    if (child < 0 || ::wait4(child, &status, 0, &usage) < 0 || status != 0) {
      state.SkipWithError("its process failed");
      return;
    }
    peak_mb = static_cast<double>(usage.ru_maxrss) / 1024;  // of it and of what it ran
  }
  state.counters["peak_MB"] = peak_mb;
}

[[maybe_unused]] const bool registered = [] {
  const std::pair<const char*, const char*> strategies[] = {
      {"ring", R"("algorithm": "ring")"},
      {"to_one", R"("algorithm": "to_one")"},
      {"halving_doubling", R"("algorithm": "halving_doubling")"},
      {"double_binary_tree", R"("algorithm": "double_binary_tree")"},
      {"nccl", R"("algorithm": "nccl")"},
      {"ring_two_streams", R"("algorithm": "ring", "streams": 2)"},
      {"trees_two_streams", R"("algorithm": "double_binary_tree", "streams": 2)"},
      {"halving_four_streams", R"("algorithm": "halving_doubling", "streams": 4)"},
      {"leaders_of_trees",
       R"("algorithm": "double_binary_tree", "hierarchy": {"form": "leaders"})"},
      {"shards_of_rings", R"("algorithm": "ring", "hierarchy": {"form": "sharded"})"},
      {"sharded", R"("algorithm": "ring", "exchange": "sharded")"},
  };
  for (const auto& [name, knobs] : strategies) {
    for (const bool simulate : {false, true}) {
      const std::string title = std::string("scale/") + (simulate ? "sim/" : "model/") + name;
      benchmark::RegisterBenchmark(title.c_str(), scale, knobs, simulate)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
  return true;
}();

}  // namespace
}  // namespace syncline
