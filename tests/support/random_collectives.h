// Clusters and collectives of random shape, from a seed: for properties that must hold for any.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "core/cluster.h"
#include "core/collective/collective.h"

namespace syncline::test {

class RandomCollectives {
 public:
  explicit RandomCollectives(std::uint32_t seed) : random_(seed) {}

  // One to three tiers; some switches are thinner than their ports, some flows capped.
  Cluster cluster(int most_nodes, int most_gpus) {
    Cluster cluster;
    cluster.name = "random";
    cluster.gpus_per_node = number(1, most_gpus);
    const int racks = number(1, 3) == 1 ? number(2, 3) : 1;
    const int nodes = std::max(racks == 1 && cluster.gpus_per_node == 1 ? 2 : 1,
                               number(1, std::max(1, most_nodes / racks)));
    cluster.nodes = racks * nodes;
    if (cluster.gpus_per_node > 1) add_tier(cluster, cluster.gpus_per_node, 5e-6, 25e9);
    if (nodes > 1) add_tier(cluster, cluster.gpus_per_node * nodes, 2e-5, 1.25e9);
    if (racks > 1) add_tier(cluster, cluster.ranks(), 3e-5, 2.5e9);
    return cluster;
  }

  // Over all ranks, blocks of them, the first of each block or one of each block.
  collective::Collective collective(const Cluster& cluster) {
    while (true) {
      collective::Collective c;
      c.kind = collective::kAllCollectiveKinds[static_cast<std::size_t>(number(0, 4))];
      const auto rows = collective::algorithms();
      c.algorithm = &rows[static_cast<std::size_t>(number(0, static_cast<int>(rows.size()) - 1))];
      c.groups = groups(cluster.ranks());
      c.elements = number(1, 3) == 1 ? number(1, 5000) : number(1, 12) * std::int64_t{100'000};
      if (c.groups.size > 1 && c.algorithm->fits(c.kind, c.groups.size)) return c;
    }
  }

  int number(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<unsigned>(most - least + 1));
  }

 private:
  void add_tier(Cluster& cluster, int span, Seconds latency, BytesPerSecond bandwidth) {
    Tier tier;
    tier.name = "t" + std::to_string(cluster.tiers.size());
    tier.span = span;
    tier.latency = latency * number(1, 3) / 2;
    tier.bandwidth = bandwidth;
    if (number(1, 4) == 1) tier.oversubscription = number(2, 4);
    if (number(1, 4) == 1) tier.flow_cap = bandwidth / number(2, 4);
    if (number(1, 6) == 1) tier.upload_ratio = number(1, 6) / 3.0;
    cluster.tiers.push_back(tier);
  }

  collective::Groups groups(int ranks) {
    std::vector<int> sizes;
    for (int size = 2; size <= ranks; ++size) {
      if (ranks % size == 0) sizes.push_back(size);
    }
    const int size = sizes[static_cast<std::size_t>(number(0, static_cast<int>(sizes.size()) - 1))];
    const int way = number(1, 5);
    if (way == 1) return collective::block_groups(ranks, size);
    if (way == 2) return collective::leader_group(ranks, size);
    if (way == 3) return collective::shard_groups(ranks, size);
    return collective::world_group(ranks);
  }

  std::mt19937 random_;
};

}  // namespace syncline::test
