// A step of data-parallel training as PyTorch's DDP runs it: the backward pass fills buckets of
// gradients, and each full bucket is all-reduced while the backward pass goes on.
#include <cstdio>
#include <memory>
#include <string>

#include "core/cost.h"
#include "core/executor.h"
#include "core/job.h"
#include "core/metrics.h"
#include "core/strategy.h"

// Returns four nodes of eight GPUs: 200 GB/s inside a node, 25 GB/s between nodes.
static syncline::Cluster four_nodes() {
  syncline::Cluster cluster;
  cluster.nodes = 4;
  cluster.gpus_per_node = 8;
  cluster.tiers = {{.name = "node", .span = 8, .latency = 5e-6, .bandwidth = 200e9},
                   {.name = "network", .span = 32, .latency = 10e-6, .bandwidth = 25e9}};
  cluster.collective_overhead = 20e-6;
  return cluster;
}

// Returns twenty layers of four million fp32 parameters, the last layer's gradient first.
static syncline::Workload twenty_layers() {
  syncline::Workload workload;
  workload.batch = 32;
  workload.forward = 12e-3;
  workload.update = 2e-3;
  for (int layer = 19; layer >= 0; --layer) {
    const std::string name = "layer" + std::to_string(layer) + ".weight";
    workload.tensors.push_back(
        {.name = name, .shape = {2000, 2000}, .elements = 4'000'000, .backward = 1.2e-3});
  }
  return workload;
}

int main() {
  syncline::Job job;
  job.workload = twenty_layers();
  job.cluster = four_nodes();
  syncline::run::ExecutorSettings settings;
  settings.cluster = job.cluster;
  const auto executor = syncline::run::make_model_executor(settings);
  syncline::collective::CostCache costs(job.cluster);
  std::printf("bucket, MB  all-reduces  step, ms  compute, ms  exposed, ms\n");
  for (const int megabytes : {16, 64, 320}) {
    syncline::Strategy strategy;
    strategy.fusion.rule = syncline::Fusion::Rule::kSize;
    strategy.fusion.size = megabytes * 1'000'000;
    const auto metrics =
        syncline::measure::evaluate_strategy(job, strategy, *executor, costs).metrics;
    std::printf("%10d  %11.0f  %8.2f  %11.2f  %11.2f\n", megabytes, metrics.collectives,
                metrics.step_time * 1e3, metrics.compute * 1e3, metrics.exposed * 1e3);
  }
}
