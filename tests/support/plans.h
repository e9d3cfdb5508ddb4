// Small clusters and plans that several tests use.
#pragma once

#include <string>
#include <vector>

#include "core/collective/algorithm.h"
#include "core/plan/plan.h"
#include "core/run/executor.h"
#include "core/scenario/cluster.h"

namespace syncline {

// `nodes` nodes of one GPU each behind one switch: 10 Gbit/s, 20 us.
inline Cluster flat_cluster(int nodes) {
  Cluster cluster;
  cluster.name = "flat";
  cluster.nodes = nodes;
  cluster.gpus_per_node = 1;
  if (nodes > 1) {
    cluster.tiers.push_back(Tier{});
    cluster.tiers[0].name = "inter";
    cluster.tiers[0].span = nodes;
    cluster.tiers[0].latency = 20e-6;
    cluster.tiers[0].bandwidth = 1.25e9;
  }
  return cluster;
}

// Nodes of `gpus` GPUs: 200 Gbit/s and 5 us inside, 10 Gbit/s and 20 us between.
inline Cluster two_tier_cluster(int nodes, int gpus) {
  Cluster cluster = flat_cluster(nodes);
  cluster.gpus_per_node = gpus;
  if (nodes > 1) cluster.tiers[0].span = nodes * gpus;
  Tier intra;
  intra.name = "intra";
  intra.span = gpus;
  intra.latency = 5e-6;
  intra.bandwidth = 25e9;
  if (gpus > 1) cluster.tiers.insert(cluster.tiers.begin(), intra);
  return cluster;
}

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
