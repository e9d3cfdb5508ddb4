// Small clusters and plans that several tests use.
#pragma once

#include <string>
#include <vector>

#include "core/algorithm.h"
#include "core/cluster.h"
#include "core/executor.h"
#include "core/plan.h"

namespace syncline {

// Nodes of `gpus` GPUs: 200 Gbit/s and 5 us inside, 10 Gbit/s and 20 us between.
inline Cluster two_tier_cluster(int nodes, int gpus) {
  Cluster cluster;
  cluster.name = "flat";
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus;
  if (gpus > 1) cluster.tiers.push_back({"intra", gpus, 5e-6, 25e9});
  if (nodes > 1) cluster.tiers.push_back({"inter", nodes * gpus, 20e-6, 1.25e9});
  return cluster;
}

// `nodes` nodes of one GPU each behind one switch.
inline Cluster flat_cluster(int nodes) { return two_tier_cluster(nodes, 1); }

inline collective::Collective collective_of(collective::CollectiveKind kind,
                                            const std::string& algorithm, collective::Groups groups,
                                            std::int64_t elements) {
  return {kind, collective::find_algorithm(algorithm), groups, elements, 4, 0};
}

// One collective on each of the given streams, all ready at once.
inline plan::Plan plan_of(
    int ranks, const std::vector<std::pair<plan::StreamId, collective::Collective>>& collectives) {
  plan::Plan plan;
  plan.ranks = ranks;
  plan.streams = 1;
  for (const auto& [stream, collective] : collectives) {
    plan.streams = std::max(plan.streams, stream + 1);
    plan.ops.push_back({stream, {}, collective, 0});
  }
  return plan;
}

inline Seconds time_of(run::Executor& executor, const plan::Plan& plan) {
  return executor.run(plan, {}, 1).timeline.period_ends.back();
}

}  // namespace syncline
