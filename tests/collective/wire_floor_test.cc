// What the wire needs: by hand on small clusters, and held against every cost on random ones.
#include "core/collective/wire_floor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/collective/nccl.h"
#include "core/cost.h"
#include "tests/support/dice.h"
#include "tests/support/plans.h"

namespace syncline::collective {
namespace {

using Kind = CollectiveKind;

Seconds floor_of(const Cluster& cluster, Kind kind, Groups groups, double bytes) {
  return wire_floor(
      cluster,
      {kind, find_algorithm("ring"), groups, static_cast<std::int64_t>(bytes) / 4, 4, 0, {}});
}

// --------------------------------------------------------------------------------------------
// By hand. Ports of 1.25 GB/s between nodes, 25 GB/s inside.

TEST(WireFloor, OneTier) {
  const Cluster four = flat_cluster(4);
  const Seconds whole = 1e9 / 1.25e9;  // 1 GB through one port
  for (const auto& [kind, times] : {std::pair(Kind::kAllReduce, 1.5),
                                    {Kind::kReduceScatter, 0.75},
                                    {Kind::kAllGather, 0.75},
                                    {Kind::kBroadcast, 1.0},
                                    {Kind::kReduce, 1.0}}) {
    EXPECT_DOUBLE_EQ(floor_of(four, kind, world_group(4), 1e9), times * whole) << to_string(kind);
  }
  EXPECT_EQ(floor_of(four, Kind::kAllReduce, block_groups(4, 1), 1e9), 0);
}

TEST(WireFloor, BetweenNodesAnAllReduceTellsEachNodeOnce) {
  const Cluster cluster = two_tier_cluster(2, 8);
  const Seconds whole = 1e9 / 1.25e9;
  EXPECT_DOUBLE_EQ(floor_of(cluster, Kind::kAllReduce, world_group(16), 1e9), whole);
  EXPECT_DOUBLE_EQ(floor_of(cluster, Kind::kReduceScatter, world_group(16), 1e9), whole / 2);
  EXPECT_DOUBLE_EQ(floor_of(cluster, Kind::kAllReduce, leader_group(16, 8), 1e9), whole);
  // Eight groups, each through the same two ports.
  EXPECT_DOUBLE_EQ(floor_of(cluster, Kind::kAllReduce, shard_groups(16, 8), 1e9), 8 * whole);
  // Inside the nodes nothing crosses.
  EXPECT_DOUBLE_EQ(floor_of(cluster, Kind::kAllReduce, block_groups(16, 8), 1e9),
                   2.0 * 7 / 8 * 1e9 / 25e9);
}

// Groups of three on nodes of two: the middle node sends for two groups.
TEST(WireFloor, GroupsThatShareANode) {
  const Cluster cluster = two_tier_cluster(3, 2);
  EXPECT_DOUBLE_EQ(floor_of(cluster, Kind::kAllReduce, block_groups(6, 3), 1e9), 2 * 1e9 / 1.25e9);
}

TEST(WireFloor, SwitchesAndCaps) {
  Cluster cluster = flat_cluster(4);
  cluster.tiers[0].oversubscription = 4;  // the switch carries one port's worth
  const Seconds whole = 1e9 / 1.25e9;
  EXPECT_DOUBLE_EQ(floor_of(cluster, Kind::kAllReduce, world_group(4), 1e9), 2 * 3 * whole);
  cluster.tiers[0].oversubscription = 1;
  cluster.tiers[0].flow_cap = 0.125e9;  // a tenth, and three pairs of two flows
  EXPECT_DOUBLE_EQ(floor_of(cluster, Kind::kAllReduce, world_group(4), 1e9), 1e9 / 0.75e9);
}

TEST(WireFloor, CountsTheBytesOfNcclsAlgorithms) {
  const Cluster cluster = two_tier_cluster(2, 8);
  Collective collective{Kind::kAllReduce, find_algorithm("ring"), world_group(16), 250000000, 4, 0,
                        NcclPick{}};
  const Seconds whole = 1e9 / 1.25e9;
  EXPECT_DOUBLE_EQ(wire_floor(cluster, collective), 2.0 * 15 / 16 * whole);
  collective.nccl->algorithm = NcclAlgorithm::kTree;
  EXPECT_DOUBLE_EQ(wire_floor(cluster, collective), whole);
  // A switch adds up inside a node: each GPU gives its payload and gets the sum.
  const Cluster node = two_tier_cluster(1, 8);
  collective.groups = world_group(8);
  EXPECT_DOUBLE_EQ(wire_floor(node, collective), 2.0 * 7 / 8 * 1e9 / 25e9);
  collective.nccl->algorithm = NcclAlgorithm::kNvls;
  EXPECT_DOUBLE_EQ(wire_floor(node, collective), 1e9 / 25e9);
}

// A cap counts for each of NCCL's connections: twice a channel, whatever GPUs are behind the NIC.
TEST(WireFloor, NcclHasAHandfulOfFlows) {
  for (const int gpus : {1, 2, 4, 8}) {
    Cluster cluster = gpus > 1 ? two_tier_cluster(4, gpus) : flat_cluster(4);
    const auto seconds = [&](NcclAlgorithm algorithm) {
      return wire_floor(cluster, {Kind::kAllReduce, find_algorithm("ring"), world_group(4 * gpus),
                                  250000000, 4, 0, NcclPick{algorithm, NcclProtocol::kSimple}});
    };
    const double edge = 2 - 0.5 / gpus;
    const Seconds free = seconds(NcclAlgorithm::kRing);
    cluster.tiers.back().flow_cap = 0.0125e9;  // of a port of 1.25 GB/s
    EXPECT_DOUBLE_EQ(seconds(NcclAlgorithm::kRing), edge * 1e9 / (2 * 0.0125e9)) << gpus;
    EXPECT_DOUBLE_EQ(seconds(NcclAlgorithm::kTree), 1e9 / (2 * 0.0125e9)) << gpus;
    cluster.nccl.channels = 4;
    EXPECT_DOUBLE_EQ(seconds(NcclAlgorithm::kRing), edge * 1e9 / (8 * 0.0125e9)) << gpus;
    cluster.nccl.channels = 0;
    cluster.tiers.back().nics = 2;  // a GPU alone reaches one of them
    EXPECT_DOUBLE_EQ(seconds(NcclAlgorithm::kTree), 1e9 / ((gpus > 1 ? 4 : 2) * 0.0125e9)) << gpus;
    cluster.tiers.back().flow_cap = 1.25e9;  // a stream fills the port: no more than without
    EXPECT_DOUBLE_EQ(seconds(NcclAlgorithm::kRing), free) << gpus;
  }
}

// Lower caps never make anything faster, whatever stands on the other levels.
TEST(WireFloor, NoPortIsFasterThanItsCap) {
  for (const int gpus : {1, 3, 8}) {
    for (const auto kind : kAllCollectiveKinds) {
      for (const auto& groups : {world_group(6 * gpus), shard_groups(6 * gpus, 2 * gpus)}) {
        Seconds before = 0;
        for (double cap = 100e9; cap > 1e5; cap /= 3) {
          Cluster cluster = gpus > 1 ? two_tier_cluster(6, gpus) : flat_cluster(6);
          cluster.device.name = "H100";
          cluster.tiers.back().flow_cap = cap;
          Collective collective{kind, nullptr, groups, 1 << 22, 4, 0, {}};
          choose_algorithm(collective, kNcclName, cluster);
          const Seconds time = NcclCostModel(cluster).time(collective)->time;
          EXPECT_GE(time, before * (1 - 1e-12)) << to_string(kind) << ", " << gpus;
          before = time;
        }
        // A hundredth of a port in a handful of streams binds any exchange across nodes.
        EXPECT_GT(before, 1e3 * static_cast<double>(1 << 24) / 1.25e9 / 100) << to_string(kind);
      }
    }
  }
}

// --------------------------------------------------------------------------------------------
// Two nodes of eight H100 behind one 400 Gbit/s port each.

TEST(WireFloor, NcclDoesNotSendMoreThanTheNicsCarry) {
  for (const int nodes : {2, 3, 4, 32}) {
    Cluster cluster = two_tier_cluster(nodes, 8);
    cluster.device.name = "H100";
    cluster.tiers[0].bandwidth = 370e9;
    cluster.tiers[1].bandwidth = 50e9;
    Collective collective{Kind::kAllReduce, nullptr, world_group(8 * nodes), 250000000, 4, 0, {}};
    choose_algorithm(collective, kNcclName, cluster);
    CostCache cache(cluster);
    EXPECT_GE(cache.time(collective), 2.0 * (nodes - 1) / nodes * 1e9 / 50e9) << nodes;
    const NcclTopology t = nccl_topology(cluster, collective.groups);
    for (const NcclGraph* graph : {&t.ring, &t.tree, &t.nvls}) {
      EXPECT_LE(graph->channels * graph->inter, 50e9) << nodes;
    }
  }
}

// --------------------------------------------------------------------------------------------
// Random clusters: no cost below the floor.

using test::Dice;

Tier random_tier(Dice& dice, int span) {
  Tier tier;
  tier.span = span;
  tier.latency = dice.pick<double>({0, 1e-6, 5e-6, 30e-6});
  tier.bandwidth = dice.pick<double>({0.125e9, 1.25e9, 12.5e9, 50e9, 400e9});
  tier.nics = dice.pick<int>({1, 1, 2, 4, 8});
  if (dice.chance(25)) tier.flow_cap = tier.bandwidth * dice.pick<double>({0.1, 0.4, 2});
  if (dice.chance(25)) tier.oversubscription = dice.pick<double>({1.5, 2, 8});
  return tier;
}

Cluster random_cluster(Dice& dice) {
  Cluster cluster;
  cluster.gpus_per_node = dice.pick<int>({1, 1, 2, 3, 4, 7, 8});
  cluster.nodes = dice.pick<int>({1, 2, 3, 4, 5, 6, 8, 12});
  cluster.device.name = dice.pick<std::string>({"V100", "A100", "H100", "B200"});
  if (cluster.ranks() == 1) cluster.nodes = 2;
  if (cluster.gpus_per_node > 1) cluster.tiers.push_back(random_tier(dice, cluster.gpus_per_node));
  if (cluster.nodes % 2 == 0 && cluster.nodes > 2 && dice.chance(40)) {
    cluster.tiers.push_back(random_tier(dice, cluster.ranks() / 2));
  }
  if (cluster.nodes > 1) cluster.tiers.push_back(random_tier(dice, cluster.ranks()));
  if (dice.chance(20)) cluster.nccl.channels = dice.pick<int>({1, 4, 16});
  if (dice.chance(20)) cluster.nccl.channel_inter = cluster.nccl.channel_intra = 48e9;
  return cluster;
}

Groups random_groups(Dice& dice, int ranks) {
  std::vector<int> sizes;
  for (int size = 2; size <= ranks; ++size) {
    if (ranks % size == 0) sizes.push_back(size);
  }
  const int size = dice.pick(sizes);
  switch (dice.between(0, 3)) {
    case 0:
      return block_groups(ranks, size);
    case 1:
      return leader_group(ranks, ranks / size);
    case 2:
      return shard_groups(ranks, ranks / size);
    default:
      return world_group(ranks);
  }
}

TEST(WireFloor, NoCostLiesBelow) {
  Dice dice(20240607);
  int tight = 0;
  for (int round = 0; round < 2000; ++round) {
    const Cluster cluster = random_cluster(dice);
    const Groups groups = random_groups(dice, cluster.ranks());
    CostCache cache(cluster);
    for (const auto kind : kAllCollectiveKinds) {
      for (const auto& name : algorithm_choices()) {
        if (!choice_fits(name, kind, groups.size)) continue;
        const auto elements = std::int64_t{1} << dice.between(0, 30);
        Collective collective{kind, nullptr, groups, elements, 4, 0, {}};
        choose_algorithm(collective, name, cluster);
        // NCCL may be predicted by another of its algorithms than the one it would choose.
        Seconds floor = wire_floor(cluster, collective);
        if (collective.nccl) {
          for (const auto other : {NcclAlgorithm::kRing, NcclAlgorithm::kTree, NcclAlgorithm::kNvls,
                                   NcclAlgorithm::kPat}) {
            Collective moved = collective;
            moved.nccl->algorithm = other;
            floor = std::min(floor, wire_floor(cluster, moved));
          }
        }
        const Seconds time = cache.time(collective);
        ASSERT_GE(time, floor * (1 - 1e-9))
            << "round " << round << ": " << name << " " << to_string(kind) << " of " << elements
            << " elements in " << groups.count << " groups of " << groups.size << " on "
            << cluster.nodes << " x " << cluster.gpus_per_node;
        EXPECT_GT(floor, 0);
        tight += time < floor * 1.01 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(tight, 2000) << "a floor that nobody comes near says little";
}

}  // namespace
}  // namespace syncline::collective
