// The end of the last stage as straight pieces: what is walked but for rounding, few walks for very
// many payloads, and the same whatever was asked before.
#include "core/collective/critical_path.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/cost.h"
#include "tests/support/fabrics.h"
#include "tests/support/plans.h"
#include "tests/support/random_collectives.h"

namespace syncline::collective {
namespace {

// 10,000 payloads from 1 KiB to 1 GiB, evenly spread over the doublings.
std::vector<double> many_payloads() {
  std::vector<double> payloads;
  for (int i = 0; i < 10'000; ++i) payloads.push_back(std::floor(std::exp2(10 + 0.002 * i)));
  return payloads;
}

// What an all-reduce over all ranks of 16 nodes of 8 takes, with a count of the walks.
struct Counted {
  explicit Counted(const char* algorithm)
      : cache(cluster),
        all_reduce(collective_of(CollectiveKind::kAllReduce, algorithm,
                                 world_group(cluster.ranks()), 1 << 20)) {}

  LastEnds::Walk walk() {
    return [this](double bytes) {
      ++walks;
      const CollectiveCost& cost = cache.cost(all_reduce);
      const Stages stages = all_reduce.algorithm->stages(all_reduce.kind, all_reduce.groups.size,
                                                         all_reduce.elements);
      return stage_ends(*cost.footprint, stages, cost.stages, bytes).back();
    };
  }

  Cluster cluster = two_tier_cluster(16, 8);
  CostCache cache;
  Collective all_reduce;
  int walks = 0;
};

TEST(LastEnds, AreFoundInFewWalks) {
  for (const char* algorithm : {"ring", "halving_doubling", "to_one"}) {
    Counted counted(algorithm);
    const auto walk = counted.walk();
    LastEnds ends;
    for (const double bytes : many_payloads()) ends.at(bytes, walk);
    EXPECT_LE(counted.walks, 20 * 8) << algorithm << ": 20 doublings";
    for (const double bytes : many_payloads()) {
      const StageEnd end = walk(bytes);
      ASSERT_NEAR(ends.at(bytes, walk).time, end.time, 1e-11 * end.time) << algorithm << bytes;
    }
  }
}

TEST(LastEnds, DoNotDependOnWhatWasAskedBefore) {
  Counted counted("ring");
  const auto walk = counted.walk();
  LastEnds rising, falling;
  const std::vector<double> payloads = many_payloads();
  std::vector<StageEnd> ends;
  for (const double bytes : payloads) ends.push_back(rising.at(bytes, walk));
  for (std::size_t i = payloads.size(); i-- > 0;) {
    const StageEnd end = falling.at(payloads[i], walk);
    ASSERT_EQ(end.time, ends[i].time);
    ASSERT_EQ(end.transfer, ends[i].transfer);
  }
}

// No straight pieces: each payload is walked.
TEST(LastEnds, AreWalkedIfTimesAreNotConvex) {
  LastEnds ends;
  const auto root = [](double bytes) { return StageEnd{std::sqrt(bytes), std::sqrt(bytes) / 2}; };
  for (const double bytes : {1.0, 1.5, 1.999, 1000.0, 1e9}) {
    EXPECT_EQ(ends.at(bytes, root).time, std::sqrt(bytes));
  }
}

// The example of critical_path.cc: messages of 10 KB at 10 GB/s inside a node, at 5 GB/s across.
TEST(StageEnds, ThreeRoundsOfARingByHand) {
  Cluster cluster = two_tier_cluster(2, 2);
  cluster.tiers[0].latency = 1e-6;
  cluster.tiers[0].bandwidth = 10e9;
  cluster.tiers[1].latency = 3e-6;
  cluster.tiers[1].bandwidth = 5e9;
  CostCache cache(cluster);
  const Collective ring = collective_of(CollectiveKind::kAllGather, "ring", world_group(4), 10'000);
  const CollectiveCost& cost = cache.cost(ring);
  const Stages stages = ring.algorithm->stages(ring.kind, ring.groups.size, ring.elements);
  const auto ends = stage_ends(*cost.footprint, stages, cost.stages, 40e3);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_NEAR(ends.back().time, 12e-6, 1e-12);
  EXPECT_NEAR(ends.back().transfer, 5e-6, 1e-12);
}

TEST(CostCache, QuickTimesAreTheTimesButForRounding) {
  test::RandomCollectives random(11);
  for (int i = 0; i < 200; ++i) {
    const Cluster cluster = random.cluster(12, 8);
    CostCache cache(cluster);
    Collective collective = random.collective(cluster);
    for (const double times : {0.01, 0.3, 1.0, 1.1, 3.0, 40.0}) {
      Collective other = collective;
      other.elements = static_cast<std::int64_t>(static_cast<double>(other.elements) * times);
      const Seconds time = cache.time(other);
      ASSERT_NEAR(cache.quick_time(other), time, 1e-9 * time)
          << collective.algorithm->name << " " << to_string(collective.kind) << ", "
          << cluster.ranks() << " ranks, " << other.bytes();
    }
  }
}

TEST(CostCache, QuickTimesAreTheCostModelsIfThereIsOne) {
  Cluster cluster = two_tier_cluster(4, 8);
  cluster.collective_overhead = 3e-6;
  cluster.cost_model = [](const Collective& asked) {
    return std::optional(CollectiveTime{.time = 1e-5 + 1e-10 * static_cast<double>(asked.bytes())});
  };
  CostCache cache(cluster);
  for (const std::int64_t elements : {1, 1000, 1'000'000}) {
    const auto ring =
        collective_of(CollectiveKind::kAllReduce, "ring", world_group(cluster.ranks()), elements);
    EXPECT_NEAR(cache.quick_time(ring), cache.time(ring), 1e-12 * cache.time(ring));
  }
}

// A ring whose flows collide by hash, where no two ranks are alike: its rounds are in their stride
// after the first few.
TEST(SteadyEnds, AreAsLongAsTheRoundsOfARing) {
  for (const int gpus : {1, 4}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      fabric::Topology topology = leaves(16, 4, 1);
      topology.hashed = true;
      topology.seed = seed;
      const Cluster tiers = gpus == 1 ? flat_cluster(16) : two_tier_cluster(16, gpus);
      const Cluster cluster = on_fabric(
          tiers, topology, fabric::place_nodes(topology, 16, fabric::Placement::kScattered, seed));
      CostCache cache(cluster);
      const Collective ring =
          collective_of(CollectiveKind::kAllReduce, "ring", world_group(cluster.ranks()), 1 << 20);
      const CollectiveCost& cost = cache.cost(ring);
      const Stages stages = ring.algorithm->stages(ring.kind, ring.groups.size, ring.elements);
      for (const double bytes : {4096.0, 1e6, 1e9}) {
        const Seconds walked = stage_ends(*cost.footprint, stages, cost.stages, bytes).back().time;
        const Seconds steady = steady_ends(*cost.footprint, stages, cost.stages, bytes).back().time;
        EXPECT_NEAR(steady, walked, 0.02 * walked) << gpus << " GPUs a node, " << bytes << " bytes";
      }
    }
  }
}

// Trees fill and drain for a few rounds; the many between are in their stride.
TEST(SteadyEnds, AreNearlyAsLongAsTheRoundsOfATree) {
  const Cluster cluster = two_tier_cluster(64, 8);
  CostCache cache(cluster);
  for (const Bytes bytes : {64 * kMiB, kGiB}) {
    const Collective tree = collective_of(CollectiveKind::kAllReduce, "double_binary_tree",
                                          world_group(cluster.ranks()), bytes / 4);
    const CollectiveCost& cost = cache.cost(tree);
    const Stages stages = tree.algorithm->stages(tree.kind, tree.groups.size, tree.elements);
    const auto size = static_cast<double>(bytes);
    const Seconds walked = stage_ends(*cost.footprint, stages, cost.stages, size).back().time;
    const Seconds steady = steady_ends(*cost.footprint, stages, cost.stages, size).back().time;
    EXPECT_NEAR(steady, walked, 0.15 * walked) << bytes;
  }
}

// So many ranks that hardly two are alike are not walked one by one for each size: a rise in the
// number of nodes makes a tree's time rise with their logarithm.
TEST(SteadyEnds, ADataCentreOfTreesIsCosted) {
  Seconds before = 0;
  for (const int nodes : {1000, 100000}) {
    const Cluster cluster = two_tier_cluster(nodes, 8);
    CostCache cache(cluster);
    for (const Bytes bytes : {64 * kMiB, 65 * kMiB, 66 * kMiB, 67 * kMiB}) {
      const Seconds time =
          cache.time(collective_of(CollectiveKind::kAllReduce, "double_binary_tree",
                                   world_group(cluster.ranks()), bytes / 4));
      if (bytes > 64 * kMiB) continue;
      EXPECT_GT(time, before);
      EXPECT_LT(time, before > 0 ? 3 * before : 10);
      before = time;
    }
  }
}

// A simulation in another process, or a cache of shifted links, begins with the walks found so far.
TEST(CostCache, CachesOfTheSameLinksWalkManyMessagesOnce) {
  const Cluster cluster = two_tier_cluster(1024, 8);
  const auto all_reduce = collective_of(CollectiveKind::kAllReduce, "double_binary_tree",
                                        world_group(cluster.ranks()), 1 << 20);
  CostCache first(cluster);
  const std::size_t before = walks();
  const std::vector<Seconds> found = first.latencies(all_reduce);
  EXPECT_GT(walks(), before);
  CostCache second(cluster);
  const std::size_t after = walks();
  EXPECT_EQ(second.latencies(all_reduce), found);
  EXPECT_EQ(walks(), after);
}

TEST(CostCache, MoreSizesThanAreKeptHaveTheSameTimes) {
  const Cluster cluster = two_tier_cluster(1024, 8);
  constexpr int kSizes = 300;
  const auto time_of_size = [&](CostCache& cache, int size) {
    return cache.time(collective_of(CollectiveKind::kAllReduce, "double_binary_tree",
                                    world_group(cluster.ranks()), 1 + size * 1024));
  };
  CostCache upwards(cluster), downwards(cluster);
  std::vector<Seconds> times;
  for (int size = 0; size < kSizes; ++size) times.push_back(time_of_size(upwards, size));
  for (int size = kSizes - 1; size >= 0; --size) {
    EXPECT_EQ(time_of_size(downwards, size), times[static_cast<std::size_t>(size)]) << size;
  }
}

}  // namespace
}  // namespace syncline::collective
