// A slow network between nodes: the gain of two levels and DGC there, in the closed-form model and
// in the simulation on SimGrid. DGC sends 0.1 % of each weight's gradient; biases travel whole.
// Ranks vary in speed: the model takes the expected delay, the simulation draws each step.
#include <cstdio>
#include <string>

#include "core/cost.h"
#include "core/executor.h"
#include "core/job.h"
#include "core/metrics.h"
#include "core/sim/sim_executor.h"
#include "core/strategy.h"

// Returns twenty layers of four million fp32 parameters on four nodes of eight GPUs, joined by a
// network of 10 Gbit/s.
static syncline::Job slow_network() {
  syncline::Job job;
  job.cluster.nodes = 4;
  job.cluster.gpus_per_node = 8;
  job.cluster.tiers = {{.name = "node", .span = 8, .latency = 5e-6, .bandwidth = 100e9},
                       {.name = "network", .span = 32, .latency = 30e-6, .bandwidth = 1.25e9}};
  job.cluster.jitter = {.kind = syncline::Jitter::Kind::kNormal, .relative = 0.05};
  job.cluster.device.memory = 1e12;  // bytes per second: the cost of a codec's passes over memory
  job.workload.forward = 12e-3;
  job.workload.update = 2e-3;
  for (int layer = 19; layer >= 0; --layer) {
    const std::string name = "layer" + std::to_string(layer);
    job.workload.tensors.push_back({.name = name + ".bias", .shape = {2000}, .elements = 2000});
    job.workload.tensors.push_back({.name = name + ".weight",
                                    .shape = {2000, 2000},
                                    .elements = 4'000'000,
                                    .backward = 1.2e-3});
  }
  return job;
}

int main() {
  const syncline::Job job = slow_network();
  syncline::run::ExecutorSettings settings;
  settings.cluster = job.cluster;
  const auto model = syncline::run::make_model_executor(settings);
  const auto simgrid = syncline::sim::make_sim_executor(settings);
  syncline::collective::CostCache costs(job.cluster);
  std::printf("step, ms             model  SimGrid\n");
  for (const std::string codec : {"", "dgc"}) {
    for (const auto form :
         {syncline::Hierarchy::Form::kFlat, syncline::Hierarchy::Form::kSharded}) {
      syncline::Strategy strategy;
      strategy.fusion.rule = syncline::Fusion::Rule::kLayer;
      strategy.hierarchy.form = form;
      strategy.hierarchy.group_size = job.cluster.gpus_per_node;
      strategy.compression.codec = codec;
      const auto milliseconds = [&](syncline::run::Executor& executor) {
        const auto evaluated = syncline::measure::evaluate_strategy(job, strategy, executor, costs);
        return evaluated.metrics.step_time * 1e3;
      };
      const bool flat = form == syncline::Hierarchy::Form::kFlat;
      std::printf("%-10s  %-5s  %6.2f  %7.2f\n", flat ? "flat" : "two levels", codec.c_str(),
                  milliseconds(*model), milliseconds(*simgrid));
    }
  }
}
