#include "core/job/parallel.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace syncline {

Cluster exchange_view(const Cluster& cluster, const Parallel& parallel, int step) {
  // If the pipeline is inside, stages lie between the replicas.
  const int apart = step * (parallel.pipeline_inside ? parallel.pipeline : 1);
  const int ranks = cluster.ranks() / (step * parallel.pipeline);
  Cluster view = cluster;
  view.gpus_per_node = std::clamp(cluster.gpus_per_node / apart, 1, ranks);
  view.nodes = ranks / view.gpus_per_node;
  view.tiers.clear();
  int unit = 1;
  for (Tier tier : cluster.tiers) {
    const int ports_of = std::exchange(unit, tier.span);
    tier.bandwidth /= std::min(apart, ports_of);
    tier.span = std::min(tier.span / apart, ranks);
    const bool crossed = tier.span > (view.tiers.empty() ? 1 : view.tiers.back().span);
    if (crossed) view.tiers.push_back(tier);
  }
  if (view.tiers.empty()) view.tiers = cluster.tiers;
  view.tiers.back().span = ranks;
  view.topology = nullptr;  // its hosts are the whole cluster's nodes
  return view;
}

Cluster group_view(const Cluster& cluster, int ranks) {
  Cluster view = cluster;
  view.gpus_per_node = std::gcd(cluster.gpus_per_node, ranks);
  view.nodes = ranks / view.gpus_per_node;
  const auto outermost =
      std::ranges::find_if(view.tiers, [&](const Tier& tier) { return tier.span >= ranks; });
  view.tiers.erase(std::next(outermost), view.tiers.end());
  view.tiers.back().span = ranks;
  return view;
}

Cluster exchanging(const Cluster& cluster, const Parallel& parallel) {
  if (!parallel.whole_job()) return cluster;
  return exchange_view(cluster, parallel, exchange_step(parallel, false));
}

}  // namespace syncline
