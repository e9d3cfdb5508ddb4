// The algorithm `nccl`: what is guessed of the topology, what is chosen, and what it costs.
#include "core/collective/nccl.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "core/collective/library.h"
#include "core/collective/wire_floor.h"
#include "core/cost.h"
#include "tests/support/plans.h"

namespace syncline::collective {
namespace {

constexpr auto kAllReduce = CollectiveKind::kAllReduce;

Collective chosen(const Cluster& cluster, CollectiveKind kind, Groups groups, Bytes bytes) {
  Collective collective{kind, nullptr, groups, bytes / 4, 4, 0, {}};
  choose_algorithm(collective, kNcclName, cluster);
  return collective;
}

Cluster nodes_of_eight(int nodes, double intra_gbytes, double nic_gbits, int nics,
                       const char* gpu) {
  Cluster cluster = two_tier_cluster(nodes, 8);
  cluster.device.name = gpu;
  cluster.tiers[0].bandwidth = intra_gbytes * kGigabytePerSecond;
  if (nodes > 1) {
    cluster.tiers[1].bandwidth = nic_gbits * kGigabitPerSecond * nics;
    cluster.tiers[1].nics = nics;
  }
  return cluster;
}

TEST(NcclTopology, ADgxA100) {
  const NcclTopology t = nccl_topology(nodes_of_eight(1, 240, 0, 1, "A100"), world_group(8));
  EXPECT_EQ(t.nodes, 1);
  EXPECT_EQ(t.gpus_per_node(), 8);
  EXPECT_EQ(t.least_capability, 80);
  EXPECT_TRUE(t.nvswitch);
  // 6 channels of 40 GB/s, cut in two.
  EXPECT_EQ(t.ring.channels, 12);
  EXPECT_DOUBLE_EQ(t.ring.intra, 20e9);
  EXPECT_EQ(t.ring.path_intra, NcclPath::kNvl);
  EXPECT_EQ(t.channels, 24);
  // NVLS needs Hopper.
  const auto table = nccl_table(t, kAllReduce);
  EXPECT_EQ(table[static_cast<std::size_t>(NcclAlgorithm::kNvls)][2].bandwidth, 0);
}

// What joins two places is nothing to those who stay in one.
TEST(NcclTopology, ALinkThatNoGroupCrossesIsNotSeen) {
  const Cluster place = nodes_of_eight(4, 370, 400, 8, "H100");
  Cluster both = nodes_of_eight(8, 370, 400, 8, "H100");
  both.tiers[1].span = 32;
  both.tiers.push_back({"places", 64, 0.01, 1e8});
  for (const Bytes bytes : {Bytes{1} << 12, Bytes{1} << 20, Bytes{1} << 28}) {
    const Collective own = chosen(place, kAllReduce, world_group(32), bytes);
    const Collective inside = chosen(both, kAllReduce, block_groups(64, 32), bytes);
    EXPECT_EQ(inside.nccl, own.nccl);
    EXPECT_DOUBLE_EQ(CostCache(both).time(inside), CostCache(place).time(own));
    // Who crosses it waits for it: two ranks, then 32 pairs that share it.
    const Collective pair = chosen(both, kAllReduce, {0, 1, 0, 2, 32}, bytes);
    EXPECT_GE(CostCache(both).time(pair), 0.02 + static_cast<double>(bytes) / 1e8);
    const Collective pairs = chosen(both, kAllReduce, shard_groups(64, 32), bytes);
    EXPECT_GE(CostCache(both).time(pairs), 0.02 + 32 * static_cast<double>(bytes) / 1e8);
  }
}

TEST(NcclTopology, HopperNodesWithANicForEachGpu) {
  const Cluster cluster = nodes_of_eight(4, 370, 400, 8, "H100");
  const NcclTopology t = nccl_topology(cluster, world_group(32));
  EXPECT_EQ(t.nodes, 4);
  EXPECT_EQ(t.least_capability, 90);
  // NICs of 50 GB/s carry 48; the ring inside feeds seven of them.
  EXPECT_DOUBLE_EQ(t.ring.inter, 48e9);
  EXPECT_EQ(t.ring.channels, 7);
  EXPECT_GT(
      nccl_table(t, kAllReduce)[static_cast<std::size_t>(NcclAlgorithm::kNvlsTree)][2].bandwidth,
      0);
}

TEST(NcclTopology, SocketsHaveOneChannelAndNoLl128) {
  const Cluster cluster = flat_cluster(8);
  const NcclTopology t = nccl_topology(cluster, world_group(8));
  EXPECT_EQ(t.ring.channels, 1);
  EXPECT_DOUBLE_EQ(t.ring.inter, 1.2e9);
  EXPECT_EQ(t.ring.path_inter, NcclPath::kPhb);
  EXPECT_EQ(t.ring.pattern, NcclPattern::kTree);
  EXPECT_EQ(nccl_table(t, kAllReduce)[1][1].bandwidth, 0);
  Cluster direct = cluster;
  direct.nccl.gpu_direct = true;
  EXPECT_GT(nccl_table(nccl_topology(direct, world_group(8)), kAllReduce)[1][1].bandwidth, 0);
}

// NCCL goes by what a NIC is rated, not by what is reached of it; the time is that of the latter,
// which holds what networks as rated are known to take longer.
TEST(NcclTopology, RatedSpeedsChooseAndReachedOnesTake) {
  const Cluster rated = flat_cluster(8);
  Cluster reached = rated;
  reached.tiers[0].efficiency = 0.5;
  reached.tiers[0].bandwidth *= 0.5;
  EXPECT_DOUBLE_EQ(nccl_topology(reached, world_group(8)).ring.inter, 1.2e9);
  const Collective large = chosen(rated, kAllReduce, world_group(8), kGiB);
  EXPECT_EQ(chosen(reached, kAllReduce, world_group(8), kGiB).nccl, large.nccl);
  EXPECT_NEAR(NcclCostModel(reached).time(large)->time / NcclCostModel(rated).time(large)->time,
              2 / std::exp(nccl_prior(path_of(rated, world_group(8)), double{kGiB}).bias), 0.01);
}

TEST(NcclTopology, GroupsLieOnNodes) {
  const Cluster cluster = nodes_of_eight(4, 240, 200, 8, "A100");
  const NcclTopology inside = nccl_topology(cluster, block_groups(32, 8));
  EXPECT_EQ(inside.nodes, 1);
  EXPECT_EQ(inside.ranks, 8);
  const NcclTopology across = nccl_topology(cluster, shard_groups(32, 8));
  EXPECT_EQ(across.nodes, 4);
  EXPECT_EQ(across.gpus_per_node(), 1);
  // One GPU goes out by one NIC, not by all eight.
  EXPECT_LE(across.ring.channels * across.ring.inter, 25e9 * 1.0001);
  const NcclTopology pairs = nccl_topology(cluster, block_groups(32, 16));
  EXPECT_EQ(pairs.nodes, 2);
  EXPECT_EQ(pairs.gpus_per_node(), 8);
  EXPECT_EQ(nccl_topology(cluster, leader_group(32, 8)).nodes, 4);
}

TEST(NcclTopology, HintsReplaceGuesses) {
  Cluster cluster = nodes_of_eight(2, 240, 200, 8, "A100");
  cluster.nccl.compute_capability = 90;
  cluster.nccl.channels = 5;
  cluster.nccl.channel_intra = 11e9;
  cluster.nccl.channel_inter = 7e9;
  cluster.nccl.nvswitch = false;
  cluster.nccl.nvlink = false;
  cluster.nccl.balanced_tree = false;
  cluster.nccl.cpu = NcclHints::Cpu::kAmd;
  const NcclTopology t = nccl_topology(cluster, world_group(16));
  EXPECT_EQ(t.least_capability, 90);
  EXPECT_EQ(t.ring.channels, 5);
  EXPECT_EQ(t.ring.intra, 7e9);  // across nodes it goes at the slower of the two
  EXPECT_EQ(t.tree.intra, 11e9);
  EXPECT_EQ(t.tree.inter, 7e9);
  EXPECT_FALSE(t.nvswitch);
  EXPECT_EQ(t.ring.path_intra, NcclPath::kPhb);
  EXPECT_EQ(t.tree.pattern, NcclPattern::kTree);
  EXPECT_EQ(t.cpu, NcclHints::Cpu::kAmd);
}

// Published by eunomia-bpf/nccl-eBPF for three ranks over sockets: Tree/LL up to 2 KiB, Ring/LL
// from 4 to 64 KiB, Ring/Simple from 128 KiB on.
TEST(NcclChoice, ThreeRanksOverSocketsAsPublished) {
  Cluster cluster = flat_cluster(3);
  cluster.device.name = "NVIDIA GeForce RTX 5090";
  cluster.nccl.channels = 2;
  for (Bytes bytes = 8; bytes <= 256 * kMiB; bytes *= 2) {
    const auto pick = chosen(cluster, kAllReduce, world_group(3), bytes).nccl;
    ASSERT_TRUE(pick.has_value());
    const bool tree = bytes <= 2 * kKiB;
    EXPECT_EQ(pick->algorithm, tree ? NcclAlgorithm::kTree : NcclAlgorithm::kRing) << bytes;
    EXPECT_EQ(pick->protocol, bytes <= 64 * kKiB ? NcclProtocol::kLl : NcclProtocol::kSimple)
        << bytes;
  }
}

TEST(NcclChoice, TransfersAreThoseOfTheNearestAlgorithm) {
  const Cluster cluster = flat_cluster(8);
  EXPECT_EQ(chosen(cluster, kAllReduce, world_group(8), 64).algorithm->name, "double_binary_tree");
  EXPECT_EQ(chosen(cluster, kAllReduce, world_group(8), kGiB).algorithm->name, "ring");
  // Whatever is chosen can be done, and NCCL is asked for nothing else.
  for (const auto kind : kAllCollectiveKinds) {
    for (const int ranks : {2, 3, 7, 16}) {
      EXPECT_TRUE(choice_fits(kNcclName, kind, ranks));
      for (const Bytes bytes : {Bytes{4}, 64 * kKiB, kGiB}) {
        const Collective c = chosen(flat_cluster(ranks), kind, world_group(ranks), bytes);
        EXPECT_TRUE(c.algorithm->fits(kind, ranks));
        EXPECT_TRUE(c.nccl.has_value());
      }
    }
  }
  Collective ring{kAllReduce, nullptr, world_group(8), 16, 4, 0, {}};
  choose_algorithm(ring, "ring", cluster);
  EXPECT_FALSE(ring.nccl.has_value());
  EXPECT_FALSE(NcclCostModel(cluster).time(ring).has_value());
}

TEST(NcclCostModel, GroupsSideBySideShareTheirNics) {
  const Cluster one_nic = nodes_of_eight(4, 240, 100, 1, "A100");
  const Cluster eight_nics = nodes_of_eight(4, 240, 100, 8, "A100");
  const Collective leaders = chosen(one_nic, kAllReduce, leader_group(32, 8), 256 * kMiB);
  const Collective shards = chosen(one_nic, kAllReduce, shard_groups(32, 8), 256 * kMiB);
  const Seconds alone = NcclCostModel(one_nic).time(leaders)->time;
  EXPECT_NEAR(NcclCostModel(one_nic).time(shards)->time / alone, 8, 0.4);
  EXPECT_DOUBLE_EQ(NcclCostModel(eight_nics).time(shards)->time,
                   NcclCostModel(eight_nics).time(leaders)->time);
}

// A user turns one figure of the network: the time follows it, without steps.

Cluster with_network(Cluster cluster, double bandwidth, double latency) {
  Tier& outside = cluster.tiers.back();
  outside.bandwidth *= bandwidth;
  outside.latency *= latency;
  return cluster;
}

// Nodes as they are built, and some of everything: GPUs of four generations, one to sixteen NICs.
std::vector<Cluster> networks() {
  std::vector<Cluster> all;
  std::mt19937 random(31);
  const auto pick = [&](std::initializer_list<double> of) {
    return of.begin()[random() % of.size()];
  };
  for (int i = 0; i < 60; ++i) {
    constexpr const char* kGpus[] = {"V100", "A100", "H100", "B200", "RTX 4090", "T4"};
    Cluster cluster = nodes_of_eight(2 + static_cast<int>(random() % 7), pick({12, 31.5, 150, 450}),
                                     pick({5, 10, 25, 100, 200, 400}),
                                     static_cast<int>(pick({1, 2, 4, 8, 16})), kGpus[random() % 6]);
    cluster.tiers.back().latency = pick({1, 5, 25}) * kMicrosecond;
    if (random() % 2 == 0) cluster.nccl.gpu_direct = random() % 2 == 0;
    constexpr Fabric kFabrics[] = {Fabric::kUnknown, Fabric::kTcp, Fabric::kEfa, Fabric::kRdma};
    cluster.fabric = kFabrics[i % 4];
    all.push_back(std::move(cluster));
  }
  return all;
}

std::vector<Collective> collectives_on(const Cluster& cluster) {
  std::vector<Collective> all;
  const int ranks = cluster.ranks();
  for (const auto kind : {kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    for (const Groups& groups :
         {world_group(ranks), shard_groups(ranks, 8), leader_group(ranks, 8)}) {
      for (Bytes bytes = kKiB; bytes <= kGiB; bytes *= 32) {
        all.push_back(chosen(cluster, kind, groups, bytes));
      }
    }
  }
  return all;
}

TEST(NcclCostModel, FollowsTheBandwidthWithoutSteps) {
  for (const Cluster& cluster : networks()) {
    const NcclCostModel cost_model(cluster);
    for (const double more : {1.01, 1.2, 1.5, 2.0, 11.0}) {
      const Cluster faster = with_network(cluster, more, 1);
      const NcclCostModel other(faster);
      for (const Collective& each : collectives_on(cluster)) {
        const double ratio = cost_model.time(each)->time /
                             other.time(chosen(faster, each.kind, each.groups, each.bytes()))->time;
        EXPECT_GE(ratio, 1 - 1e-9) << each.bytes();
        EXPECT_LE(ratio, more * (1 + 1e-9)) << each.bytes();
        const bool sockets = cluster.fabric == Fabric::kTcp;  // a square root
        if (each.bytes() == kGiB && !sockets &&
            faster.tiers.back().bandwidth < cluster.tiers.front().bandwidth / 4) {
          EXPECT_GT(ratio, 1 + (more - 1) * 0.5);
        }
      }
    }
  }
}

// Two collectives at a time share a node's processors as they share a port.
TEST(NcclCostModel, SocketsKeepTheNodesBusyForAllTheirTime) {
  for (const double gbps : {5.0, 10.0, 100.0, 400.0}) {
    Cluster cluster = nodes_of_eight(4, 150, gbps, 1, "A100");
    cluster.fabric = Fabric::kTcp;
    CostCache cache(cluster);
    const Collective large = chosen(cluster, kAllReduce, world_group(cluster.ranks()), kGiB);
    const CollectiveCost& cost = cache.cost(large);
    Seconds busy = 0;
    for (const StageCost& stage : cost.stages) {
      Seconds busiest = 0;
      for (const auto& [link, seconds] : stage.links) busiest = std::max(busiest, seconds);
      busy += busiest * static_cast<double>(large.bytes());
    }
    EXPECT_GT(busy, 0.8 * cache.time(large)) << gbps;
  }
}

TEST(NcclCostModel, FollowsTheLatency) {
  for (const Cluster& cluster : networks()) {
    const NcclCostModel cost_model(cluster);
    for (const double more : {1.5, 30.0, 1000.0}) {
      const Cluster slower = with_network(cluster, 1, more);
      const NcclCostModel other(slower);
      for (const Collective& each : collectives_on(cluster)) {
        const double ratio = other.time(each)->time / cost_model.time(each)->time;
        EXPECT_GE(ratio, 1);
        EXPECT_LE(ratio, more);
        if (each.bytes() == kKiB) {
          EXPECT_GT(ratio, 1);
        }
      }
    }
  }
}

// What goes from node to node in a chain pays each way in full; a pair is a send between stages.
// Beside the latency it takes what the wire needs at least.
TEST(NcclCostModel, AChainTakesTheLatencyOfEachHop) {
  constexpr auto kReduce = CollectiveKind::kReduce;
  constexpr auto kBroadcast = CollectiveKind::kBroadcast;
  for (Cluster cluster : networks()) {
    const int ranks = cluster.ranks();
    for (const auto kind : {kReduce, kBroadcast}) {
      for (const Groups& groups : {Groups{0, 8, 1, 2, 8}, leader_group(ranks, 8),
                                   world_group(ranks), block_groups(ranks, 8)}) {
        const bool inside = groups.member_step == 1 && groups.size == 8;
        const int hops = inside ? 7 : cluster.nodes > 2 && groups.size == 2 ? 1 : cluster.nodes - 1;
        for (const Bytes bytes : {Bytes{64}, kMiB, 256 * kMiB}) {
          Tier& tier = inside ? cluster.tiers.front() : cluster.tiers.back();
          const Seconds given = tier.latency;
          tier.latency = 20 * kMicrosecond;  // more than any constant of NCCL's
          const Collective each = chosen(cluster, kind, groups, bytes);
          const Seconds before = NcclCostModel(cluster).time(each)->time;
          EXPECT_GE(before, tier.latency + wire_floor(cluster, each));
          for (const Seconds more : {1e-4, 1e-2, 0.1}) {
            tier.latency = 20 * kMicrosecond + more;
            const Seconds longer = NcclCostModel(cluster).time(each)->time - before;
            // What NCCL counts inside a node is known less exactly than its links are given.
            EXPECT_GE(longer, (inside ? 0.5 : 1 - 1e-9) * hops * more)
                << to_string(kind) << " of " << bytes << " by " << groups.size;
          }
          tier.latency = given;
        }
      }
    }
  }
}

// nccl-tests issues 196, 22: on two nodes a tree sends every byte through a port once, which a ring
// does nearly twice, so NCCL raises its speed inside the nodes up to twice that across. A log of
// two A100 with one NIC: "Pattern 4 ... bw 24.0/24.0", "Pattern 3 ... bw 48.0/24.0".
TEST(NcclTopology, ATreeIsRaisedInsideTheNodes) {
  const auto of = [](const Cluster& cluster) {
    return nccl_topology(cluster, world_group(cluster.ranks()));
  };
  Cluster alone = flat_cluster(2);
  alone.device.name = "A100";
  alone.tiers[0].bandwidth = 200 * kGigabitPerSecond;
  EXPECT_DOUBLE_EQ(of(alone).ring.intra, 24e9);
  EXPECT_DOUBLE_EQ(of(alone).tree.intra, 48e9);
  EXPECT_DOUBLE_EQ(of(alone).tree.inter, 24e9);
  // Inside a node NVLink carries it, PCIe what is left beside the NIC's traffic.
  const NcclTopology joined = of(nodes_of_eight(2, 150, 100, 1, "V100"));
  EXPECT_DOUBLE_EQ(joined.ring.intra, 12e9);
  EXPECT_DOUBLE_EQ(joined.tree.intra, 24e9);
  const NcclTopology slots = of(nodes_of_eight(2, 31.5, 100, 1, "A100"));
  EXPECT_DOUBLE_EQ(slots.ring.intra, 12e9);
  EXPECT_DOUBLE_EQ(slots.tree.intra, 20e9);
  EXPECT_DOUBLE_EQ(of(nodes_of_eight(2, 12, 100, 1, "T4")).tree.intra, 12e9);
  // One node has no ports to be bound by.
  const NcclTopology one = of(nodes_of_eight(1, 150, 0, 1, "V100"));
  EXPECT_EQ(one.tree.intra, one.ring.intra);
}

Seconds likely(const Cluster& cluster, CollectiveKind kind, Bytes bytes) {
  return NcclCostModel(cluster)
      .time(chosen(cluster, kind, world_group(cluster.ranks()), bytes))
      ->time;
}

// Four GH200 a node with a NIC of 200 Gbit/s each: 47.5, 87.0 and 90.0 ms for 4 GiB on 2, 4 and 8
// nodes, as nccl-tests measured them. The guess is as far off on two nodes as on more.
TEST(NcclCostModel, TwoNodesTakeHalfOfWhatFourDo) {
  constexpr std::pair<int, double> kMeasured[] = {{2, 47.5e-3}, {4, 87.0e-3}, {8, 90.0e-3}};
  std::vector<double> off;
  for (const auto& [nodes, measured] : kMeasured) {
    Cluster cluster = two_tier_cluster(nodes, 4);
    cluster.device.name = "GH200";
    cluster.fabric = Fabric::kSlingshot;
    cluster.tiers[0].bandwidth = 450 * kGigabytePerSecond;
    cluster.tiers[0].latency = 2e-6;
    cluster.tiers[1].bandwidth = 100 * kGigabytePerSecond;
    cluster.tiers[1].nics = 4;
    cluster.tiers[1].latency = 5e-6;
    off.push_back(likely(cluster, kAllReduce, 4 * kGiB) / measured);
    EXPECT_LT(std::fabs(std::log(off.back())), 0.4) << nodes;
  }
  EXPECT_NEAR(off[0] / off[1], 1, 0.2);
  EXPECT_NEAR(off[2] / off[1], 1, 0.1);
}

// Eight A100 a node joined by NVLink: a channel of a tree reaches 23.6 GB/s there, so that rings
// keep two nodes of a NIC for each GPU (16 GiB: 252 ms measured, of a ring).
TEST(NcclCostModel, AmperesTreesAreBoundByTheirChannels) {
  Cluster cluster = nodes_of_eight(2, 300, 200, 8, "A100");
  cluster.fabric = Fabric::kRdma;
  const Collective large = chosen(cluster, kAllReduce, world_group(16), 16 * kGiB);
  EXPECT_EQ(large.nccl->algorithm, NcclAlgorithm::kRing);
  EXPECT_NEAR(NcclCostModel(cluster).time(large)->time / 0.252, 0.8, 0.25);
}

// A better link never makes a collective longer, whichever level it is of.
TEST(NcclCostModel, NeverTakesLongerWithMoreEfficiency) {
  for (const Cluster& rated : networks()) {
    for (std::size_t tier = 0; tier < rated.tiers.size(); ++tier) {
      std::vector<Seconds> before;
      for (const double efficiency : {0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0}) {
        Cluster cluster = rated;
        cluster.tiers[tier].efficiency = efficiency;
        cluster.tiers[tier].bandwidth *= efficiency;
        const NcclCostModel cost_model(cluster);
        std::vector<Seconds> times;
        for (const Collective& each : collectives_on(cluster)) {
          times.push_back(cost_model.time(each)->time);
          if (before.empty()) continue;
          EXPECT_LE(times.back(), before[times.size() - 1] * (1 + 1e-12))
              << efficiency << ' ' << each.bytes();
        }
        before = std::move(times);
      }
    }
  }
}

// Links that were measured take what they take; what collectives cost beside them is not known any
// better.
TEST(NcclCostModel, AMeasuredBandwidthIsNotScaled) {
  Cluster cluster = two_tier_cluster(1, 2);
  cluster.device.name = "H100";
  cluster.tiers[0].bandwidth = 20 * kGigabytePerSecond;
  constexpr Bytes kLarge = 2'000'000'000;
  const Collective large = chosen(cluster, kAllReduce, world_group(2), kLarge);
  const CollectiveTime sheet = *NcclCostModel(cluster).time(large);
  EXPECT_GT(sheet.time, 0.15);
  cluster.tiers[0].measured = true;
  const CollectiveTime measured = *NcclCostModel(cluster).time(large);
  EXPECT_NEAR(measured.time, 0.1, 0.002);
  EXPECT_NEAR(measured.spread, 0.1, 0.01);
  EXPECT_GT(sheet.spread, 0.3);
  // One link of two: the other is still a data sheet's.
  for (const std::size_t tier : {std::size_t{0}, std::size_t{1}}) {
    Cluster nodes = nodes_of_eight(4, 150, 100, 1, "V100");
    nodes.tiers[1].latency = 1e-6;
    const Seconds before = likely(nodes, kAllReduce, kGiB);
    nodes.tiers[tier].measured = true;
    const Seconds after = likely(nodes, kAllReduce, kGiB);
    EXPECT_EQ(after < 0.95 * before, tier == 1);
    EXPECT_LE(after, before);
  }
}

// What `check` prints of channels, said again.
TEST(NcclTopology, SayingTheGuessChangesNothing) {
  for (const Cluster& cluster : networks()) {
    const NcclTopology t = nccl_topology(cluster, world_group(cluster.ranks()));
    std::vector<Cluster> said(6, cluster);
    said[0].nccl.channels = static_cast<int>(t.ring.channels);
    said[1].nccl.channel_intra = t.tree.intra;
    said[2].nccl.channel_inter = t.ring.inter;
    said[3].nccl.compute_capability = t.least_capability;
    said[4].nccl.nvswitch = t.nvswitch;
    said[5].nccl = said[0].nccl;
    said[5].nccl.channel_intra = t.tree.intra * (1 + 4e-6);  // as printed
    said[5].nccl.channel_inter = t.ring.inter * (1 - 4e-6);
    const NcclCostModel cost_model(cluster);
    for (std::size_t i = 0; i < said.size(); ++i) {
      const NcclCostModel other(said[i]);
      const Groups world = world_group(cluster.ranks());
      for (Bytes bytes = kKiB; bytes <= kGiB; bytes *= 32) {
        const Collective each = chosen(cluster, kAllReduce, world, bytes);
        EXPECT_EQ(chosen(said[i], kAllReduce, world, bytes).nccl, each.nccl) << i;
        EXPECT_EQ(other.time(each)->time, cost_model.time(each)->time) << i << ' ' << bytes;
      }
    }
  }
}

// A rate that is half of the guess halves what channels carry; more than the ports carry is none.
TEST(NcclCostModel, SlowerChannelsTakeLonger) {
  const Cluster cluster = nodes_of_eight(4, 150, 100, 1, "V100");
  const NcclTopology t = nccl_topology(cluster, world_group(32));
  const Seconds guessed = likely(cluster, kAllReduce, kGiB);
  Cluster said = cluster;
  said.nccl.channel_inter = t.ring.inter / 2;
  EXPECT_NEAR(likely(said, kAllReduce, kGiB) / guessed, 2, 0.1);
  said.nccl.channel_inter = t.ring.inter * 10;
  EXPECT_GT(likely(said, kAllReduce, kGiB) / guessed, 0.8);
}

// The name of a cluster is a label: the device alone says what NCCL finds.
TEST(NcclTopology, TheClustersNameSaysNothing) {
  Cluster cluster = nodes_of_eight(4, 150, 10, 1, "V100");
  cluster.name = "my 4090 box, was an H100";
  EXPECT_EQ(nccl_topology(cluster, world_group(32)).least_capability, 70);
  cluster.device.name = "";
  EXPECT_EQ(likely_library(cluster), Library::kLinks);
}

// --------------------------------------------------------------------------------------------
// A cost model costs what it knows.

Seconds alone(CostCache& cache, const Collective& collective) {
  const auto& latencies = cache.latencies(collective);
  return std::accumulate(latencies.begin(), latencies.end(), 0.0) +
         cache.cost(collective).seconds_per_byte * static_cast<double>(collective.bytes());
}

TEST(CostModel, TheCostIsTheCostModelsTime) {
  for (const Cluster& cluster : {flat_cluster(2), flat_cluster(7), two_tier_cluster(2, 4),
                                 two_tier_cluster(4, 8), two_tier_cluster(1, 4)}) {
    CostCache cache(cluster);
    for (const auto kind : kAllCollectiveKinds) {
      for (Bytes bytes = 4; bytes <= kGiB; bytes *= 8) {
        const Collective c = chosen(cluster, kind, world_group(cluster.ranks()), bytes);
        const Seconds cost_model = NcclCostModel(cluster).time(c)->time;
        EXPECT_NEAR(cache.time(c) / cost_model, 1, 1e-12);
        EXPECT_NEAR(alone(cache, c) / cost_model, 1, 1e-12);
        for (const Seconds latency : cache.latencies(c)) EXPECT_GE(latency, 0);
      }
    }
  }
}

TEST(CostModel, SlowerThanTheLinksIsLatencyFasterScalesThem) {
  Cluster cluster = flat_cluster(4);
  const Collective ring = collective_of(kAllReduce, "ring", world_group(4), 1 << 20);
  CostCache links(cluster);
  const Seconds time = links.time(ring);
  const double rate = links.cost(ring).seconds_per_byte;
  const auto transfer = rate * static_cast<double>(ring.bytes());

  cluster.cost_model = [&](const Collective&) { return CollectiveTime{.time = 3 * time}; };
  CostCache slow(cluster);
  EXPECT_DOUBLE_EQ(slow.time(ring), 3 * time);
  EXPECT_EQ(slow.cost(ring).seconds_per_byte, rate);
  EXPECT_EQ(slow.cost(ring).scale, 1);

  cluster.cost_model = [&](const Collective&) { return CollectiveTime{.time = transfer / 4}; };
  CostCache fast(cluster);
  EXPECT_DOUBLE_EQ(fast.time(ring), transfer / 4);
  EXPECT_DOUBLE_EQ(fast.cost(ring).scale, 0.25);
  EXPECT_DOUBLE_EQ(fast.cost(ring).stages[0].links[0].second,
                   links.cost(ring).stages[0].links[0].second / 4);
  // The same bytes leave each rank.
  EXPECT_EQ(fast.cost(ring).carried, links.cost(ring).carried);

  // A cost model that does not know the collective leaves it to the links; the overhead comes on
  // top.
  cluster.cost_model = [](const Collective&) { return std::optional<CollectiveTime>(); };
  cluster.collective_overhead = 7e-6;
  CostCache unknown(cluster);
  EXPECT_DOUBLE_EQ(unknown.time(ring), time + 7e-6);
  EXPECT_DOUBLE_EQ(unknown.least(ring, kGiB).seconds_per_byte, unknown.cost(ring).seconds_per_byte);
}

TEST(CostModel, AClustersCostModelComesBeforeNcclsOwn) {
  Cluster cluster = flat_cluster(4);
  const Collective c = chosen(cluster, kAllReduce, world_group(4), kMiB);
  cluster.cost_model = [](const Collective& asked) {
    return asked.nccl ? std::optional(CollectiveTime{.time = 1.5}) : std::nullopt;
  };
  CostCache cache(cluster);
  EXPECT_DOUBLE_EQ(cache.time(c), 1.5);
}

TEST(CostModel, TheLeastUndercutsEverySize) {
  std::vector<Cluster> clusters = networks();
  clusters.insert(clusters.end(), {flat_cluster(8), two_tier_cluster(4, 8)});
  std::mt19937_64 random(47);
  for (const Cluster& cluster : clusters) {
    CostCache cache(cluster);
    const Groups world = world_group(cluster.ranks());
    const Bytes largest = static_cast<Bytes>(1 << 12) + static_cast<Bytes>(random() % (512 * kMiB));
    const Collective own = chosen(cluster, kAllReduce, world, largest / 7);
    const auto least = cache.least(own, largest);
    EXPECT_GE(least.latency, 0);
    EXPECT_GT(least.scale, 0);
    EXPECT_LE(least.scale, 1);
    // Beside powers of two, where NCCL's model jumps, and anywhere between.
    std::vector<Bytes> sizes;
    for (Bytes power = 8; power <= largest; power *= 2) {
      for (const Bytes bytes :
           {power - 4, power, power + 4 * static_cast<Bytes>(random() % 1000)}) {
        if (bytes <= largest) sizes.push_back(bytes);
      }
      sizes.push_back(power +
                      static_cast<Bytes>(random() % static_cast<std::uint64_t>(power)) / 4 * 4);
    }
    for (const Bytes bytes : sizes) {
      const Collective c = chosen(cluster, kAllReduce, world, std::min(bytes, largest));
      EXPECT_LE(least.latency + least.seconds_per_byte * static_cast<double>(c.bytes()),
                cache.time(c) * (1 + 1e-9))
          << c.bytes() << " of " << largest;
    }
  }
}

constexpr Fabric kAll[] = {Fabric::kUnknown, Fabric::kTcp,  Fabric::kTcpx,     Fabric::kEfa,
                           Fabric::kRdma,    Fabric::kRccl, Fabric::kSlingshot};

TEST(Prior, HasNoJumpsAndLeavesTimesRisingWithThePayload) {
  for (const Fabric fabric : kAll) {
    for (const bool nvlink : {false, true}) {
      for (const bool across : {false, true}) {
        const Path path{across, fabric, nvlink};
        Prior before = nccl_prior(path, 1);
        for (double bytes = 1; bytes < 1e15; bytes *= 1.1) {
          const Prior prior = nccl_prior(path, bytes);
          EXPECT_GT(prior.spread, 0.15);
          EXPECT_LT(std::abs(prior.spread - before.spread), 0.03) << bytes;
          EXPECT_LT(std::abs(prior.bias - before.bias), 0.04) << bytes;
          // A payload of a tenth more never takes less where its bytes are what takes long.
          EXPECT_GT(prior.bias - before.bias, -std::log(1.1) / 4) << bytes;
          before = prior;
        }
      }
    }
  }
}

}  // namespace
}  // namespace syncline::collective
