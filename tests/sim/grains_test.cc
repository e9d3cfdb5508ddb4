// The closed form, the merged simulation and the simulation message by message, held against each
// other where they once parted; on random scenarios: census_test.cc.

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/simulated.h"

namespace syncline::sim {
namespace {

Cluster cluster_of_tiers(int nodes, int gpus, Tier intra, Tier inter) {
  Cluster cluster = two_tier_cluster(nodes, gpus);
  intra.span = gpus;
  inter.span = nodes * gpus;
  cluster.tiers = {intra, inter};
  return cluster;
}

Tier links(double latency_us, double gbps) {
  Tier tier;
  tier.latency = latency_us * kMicrosecond;
  tier.bandwidth = gbps * kGigabitPerSecond;
  return tier;
}

// Dozens of messages into one port, step by step: SimGrid once lost its way over what rounding left
// of the link, and its process crashed.
TEST(Grains, ManyMessagesIntoOnePort) {
  for (const int nodes : {2, 3, 8, 12, 25}) {
    for (const int gpus : {2, 3, 4, 8}) {
      const Cluster cluster = cluster_of_tiers(nodes, gpus, links(5, 1000), links(20, 1));
      const plan::Plan plan = all_reduce_plan(nodes * gpus, "to_one", 467720);
      const Seconds model = modelled(cluster, plan);
      EXPECT_NEAR(simulated(cluster, plan, Granularity::kStep, false) / model, 1, 1e-6)
          << nodes << " x " << gpus;
    }
  }
}

// Flows that stand for 7 and for 32 messages share the port that all of them go to: in proportion.
TEST(Grains, FoldedFlowsShareALinkInProportion) {
  for (const int gpus : {2, 3, 8}) {
    const Cluster cluster = cluster_of_tiers(5, gpus, links(1, 40), links(20, 25));
    const plan::Plan plan = all_reduce_plan(5 * gpus, "to_one", 5000000);
    const Seconds unfolded = simulated(cluster, plan, Granularity::kMerged, false);
    EXPECT_NEAR(simulated(cluster, plan, Granularity::kMerged) / unfolded, 1, 1e-6) << gpus;
    EXPECT_NEAR(modelled(cluster, plan) / unfolded, 1, 1e-6) << gpus;
  }
}

// Ranks whose own messages stay inside a node are rounds ahead of the others: the rounds overlap,
// and the slowest links of each do not add up.
TEST(Grains, RoundsOverlapIfSomeRanksAreFaster) {
  const Cluster halves = cluster_of_tiers(12, 2, links(5, 50), links(20, 1));
  const plan::Plan halving = all_reduce_plan(24, "halving_doubling", 9034598);
  const Seconds model = modelled(halves, halving);
  EXPECT_NEAR(simulated(halves, halving, Granularity::kMerged) / model, 1, 1e-6);
  EXPECT_NEAR(simulated(halves, halving, Granularity::kStep, false) / model, 1, 1e-4);

  // Equal latencies hide nothing: the links differ.
  const Cluster alike = cluster_of_tiers(12, 2, links(20, 50), links(20, 1));
  EXPECT_NEAR(simulated(alike, halving, Granularity::kStep, false) / modelled(alike, halving), 1,
              1e-3);

  const Cluster trees = cluster_of_tiers(5, 6, links(20, 50), links(1, 1));
  const plan::Plan tree = all_reduce_plan(30, "double_binary_tree", 28526);
  EXPECT_NEAR(simulated(trees, tree, Granularity::kStep, false) / modelled(trees, tree), 1, 0.11);

  const Cluster nodes = cluster_of_tiers(3, 2, links(10, 1000), links(20, 1));
  const plan::Plan leaders =
      plan_of(6, {{1, collective_of(collective::CollectiveKind::kReduce, "ring",
                                    collective::block_groups(6, 3), 1000)}});
  EXPECT_NEAR(simulated(nodes, leaders, Granularity::kStep, false) / modelled(nodes, leaders), 1,
              1e-4);
}

// What shares a link has as much of it as its messages are many: a stage of messages across the
// nodes and one of messages inside them run beside each other, each at its own rate.
TEST(Grains, LinksAreSharedByMessages) {
  Cluster cluster = cluster_of_tiers(4, 4, links(5, 100), links(10, 10));
  cluster.tiers[1].oversubscription = 2;
  for (const auto& [one, other] :
       {std::pair("halving_doubling", "halving_doubling"), std::pair("halving_doubling", "ring"),
        std::pair("to_one", "halving_doubling")}) {
    for (const std::int64_t elements : {200000, 1000000, 3000000}) {
      const plan::Plan plan =
          plan_of(16, {{1, all_reduce(16, one, 1000000)}, {2, all_reduce(16, other, elements)}});
      const Seconds model = modelled(cluster, plan);
      EXPECT_NEAR(simulated(cluster, plan, Granularity::kMerged, false) / model, 1, 0.01)
          << one << " beside " << other << " of " << elements;
      EXPECT_NEAR(simulated(cluster, plan, Granularity::kMerged) / model, 1, 0.01)
          << one << " beside " << other << " of " << elements;
    }
  }
}

// Beyond thousands of ranks flows go over the heaviest links alone (flows.h).
TEST(Grains, ThousandsOfRanksShareTheirHeaviestLinks) {
  const Cluster cluster = cluster_of_tiers(640, 8, links(4, 1000), links(8, 100));
  for (const char* algorithm : {"double_binary_tree", "halving_doubling", "ring", "to_one"}) {
    const int ranks = cluster.ranks();
    const plan::Plan plan = plan_of(ranks, {{1, all_reduce(ranks, algorithm, 2000000)},
                                            {2, all_reduce(ranks, algorithm, 500000)}});
    EXPECT_NEAR(simulated(cluster, plan, Granularity::kMerged) / modelled(cluster, plan), 1, 0.02)
        << algorithm;
  }
}

}  // namespace
}  // namespace syncline::sim
