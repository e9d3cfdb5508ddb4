// Folding changes no cost: links, ranks and the chain of messages are as if each had been worked
// out by itself.
#include "core/collective/footprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/collective/critical_path.h"
#include "core/cost.h"
#include "tests/support/plans.h"
#include "tests/support/random_collectives.h"
#include "tests/support/unfolded.h"

namespace syncline::collective {
namespace {

using test::RandomCollectives;
using test::UnfoldedCost;

constexpr double kRounding = 1e-12;

std::string named(const Cluster& cluster, const Collective& c) {
  return std::string(c.algorithm->name) + " " + std::string(to_string(c.kind)) + ", " +
         std::to_string(c.groups.count) + " groups of " + std::to_string(c.groups.size) + " on " +
         std::to_string(cluster.nodes) + " x " + std::to_string(cluster.gpus_per_node) + ", " +
         std::to_string(cluster.tiers.size()) + " tiers, " + std::to_string(c.elements);
}

void expect_same_links(const Cluster& cluster, const CollectiveCost& folded,
                       const UnfoldedCost& unfolded) {
  const Network network(cluster);
  const auto& kinds = folded.footprint->kind_of_link();
  ASSERT_EQ(folded.stages.size(), unfolded.stages().size());
  for (std::size_t s = 0; s < folded.stages.size(); ++s) {
    const auto& [seconds, links] = unfolded.stages()[s];
    ASSERT_NEAR(folded.stages[s].seconds_per_byte, seconds, kRounding * seconds);
    const std::map<int, double> by_kind(folded.stages[s].links.begin(),
                                        folded.stages[s].links.end());
    for (int id = 0; id < network.link_count(); ++id) {
      const auto own = links.find(id);
      const auto kind = by_kind.find(kinds[static_cast<std::size_t>(id)]);
      ASSERT_EQ(own != links.end(), kind != by_kind.end()) << "stage " << s << ", link " << id;
      if (own == links.end()) continue;
      ASSERT_NEAR(kind->second, own->second, kRounding * own->second);
    }
  }
}

// Of a cost by stages, signed: what a stage gains by being begun early is below nothing.
void expect_same_latencies(const CollectiveCost& cost, const Collective& collective,
                           const UnfoldedCost& unfolded) {
  const Stages stages =
      collective.algorithm->stages(collective.kind, collective.groups.size, collective.elements);
  for (const double bytes : {0.0, 1000.0, 3e5, 5e7}) {
    const auto expected = unfolded.latencies(bytes);
    const auto told = stage_latencies(stage_ends(*cost.footprint, stages, cost.stages, bytes),
                                      cost.stages, bytes);
    ASSERT_EQ(told.size(), expected.size());
    Seconds whole = cost.seconds_per_byte * bytes;
    for (const Seconds each : expected) whole += std::abs(each);
    for (std::size_t s = 0; s < told.size(); ++s) {
      // A difference of clocks: rounded like the whole.
      ASSERT_NEAR(told[s], expected[s], kRounding * whole) << bytes << " bytes, stage " << s;
    }
  }
}

TEST(Footprint, CostsAreThoseOfSingleEdges) {
  RandomCollectives random(1);
  for (int i = 0; i < 300; ++i) {
    const Cluster cluster = random.cluster(12, 8);
    const Collective collective = random.collective(cluster);
    SCOPED_TRACE(named(cluster, collective));
    CostCache cache(cluster);
    const UnfoldedCost unfolded(cluster, collective);
    // Where ranks are a stage ahead all stages are one, evaluated by the path (cost.h).
    const bool at_once = cache.cost(collective).stages.size() == 1 && unfolded.stages().size() > 1;
    if (at_once) continue;
    ASSERT_NO_FATAL_FAILURE(expect_same_links(cluster, cache.cost(collective), unfolded));
    for (int rank = 0; rank < cluster.ranks(); ++rank) {
      ASSERT_NEAR(cache.cost(collective).payloads_sent(rank), unfolded.payloads_sent(rank),
                  kRounding * unfolded.payloads_sent(rank));
    }
    // A flat network is one latency a round, by definition and not by the chain.
    if (cache.cost(collective).footprint->uniform()) continue;
    ASSERT_NO_FATAL_FAILURE(expect_same_latencies(cache.cost(collective), collective, unfolded));
  }
}

// Rounds that repeat are gone through until they shift all clocks alike, and then skipped.
TEST(Footprint, LongRingsAreAsIfEveryRoundWasGoneThrough) {
  RandomCollectives random(5);
  for (int i = 0; i < 12; ++i) {
    Cluster cluster = random.cluster(90, 5);
    while (cluster.ranks() < 100 || cluster.tiers.size() < 2) cluster = random.cluster(90, 5);
    const auto ring =
        collective_of(CollectiveKind::kAllReduce, "ring", world_group(cluster.ranks()), 1'000'000);
    SCOPED_TRACE(named(cluster, ring));
    CostCache cache(cluster);
    ASSERT_NO_FATAL_FAILURE(
        expect_same_latencies(cache.cost(ring), ring, UnfoldedCost(cluster, ring)));
  }
}

// Links that are all slower or faster alike share what was worked out: the same costs.
TEST(Footprint, ShiftedLinksCostTheSameOnTheirOwn) {
  RandomCollectives random(7);
  for (int i = 0; i < 200; ++i) {
    const Cluster cluster = random.cluster(12, 8);
    LinkShift shift{cluster.tiers, random.number(1, 40) / 10.0, random.number(1, 40) / 10.0};
    Cluster moved = cluster;
    for (Tier& tier : moved.tiers) {
      tier.latency *= shift.latency;
      tier.bandwidth *= shift.bandwidth;
      tier.flow_cap *= shift.bandwidth;
    }
    const Collective collective = random.collective(cluster);
    SCOPED_TRACE(named(moved, collective));
    CostCache as_given(cluster);
    CostCache shared(moved, shift);
    CostCache alone(moved);
    const Seconds time = alone.time(collective);
    ASSERT_NEAR(shared.time(collective), time, 1e-9 * time);
    const auto& told = shared.cost(collective);
    const auto& expected = alone.cost(collective);
    ASSERT_EQ(told.stages.size(), expected.stages.size());
    for (std::size_t s = 0; s < told.stages.size(); ++s) {
      ASSERT_NEAR(told.stages[s].seconds_per_byte, expected.stages[s].seconds_per_byte,
                  1e-9 * expected.stages[s].seconds_per_byte);
      ASSERT_NEAR(told.stages[s].flow_rate, expected.stages[s].flow_rate,
                  1e-9 * expected.stages[s].flow_rate);
    }
  }
}

// Where the longest chain takes long to find it is kept for all of them: right where nothing
// shifts, never longer than it really is, and off in the second order alone.
TEST(Footprint, ManyMessagesKeepTheirLongestChain) {
  const Cluster cluster = two_tier_cluster(512, 8);
  const auto tree = collective_of(CollectiveKind::kAllReduce, "double_binary_tree",
                                  world_group(cluster.ranks()), 40 * kChunkElements);
  for (const double latency : {0.5, 0.95, 1.0, 1.05, 2.0}) {
    Cluster moved = cluster;
    for (Tier& tier : moved.tiers) tier.latency *= latency;
    const Seconds kept = CostCache(moved, {cluster.tiers, latency, 1}).time(tree);
    const Seconds found = CostCache(moved).time(tree);
    EXPECT_LE(kept, found * (1 + 1e-12)) << latency;
    EXPECT_GT(kept, found * (1 - (latency == 1 ? 1e-12 : 0.02))) << latency;
  }
}

// A line below the cost of all payloads up to the largest, however many chunks they are cut into.
TEST(Footprint, TheLeastCostIsBelowAllOthers) {
  RandomCollectives random(8);
  for (int i = 0; i < 200; ++i) {
    const Cluster cluster = random.cluster(12, 8);
    CostCache cache(cluster);
    Collective collective = random.collective(cluster);
    SCOPED_TRACE(named(cluster, collective));
    if (collective.nccl) continue;
    const LeastCost least = cache.least(collective, 3 * collective.bytes());
    for (const double times : {0.01, 0.5, 1.0, 1.1, 3.0}) {
      Collective other = collective;
      other.elements = static_cast<std::int64_t>(static_cast<double>(other.elements) * times);
      const Seconds time = cache.time(other) - cluster.collective_overhead;
      const auto bytes = static_cast<double>(other.bytes());
      ASSERT_LE(least.latency + least.seconds_per_byte * bytes, time * (1 + 1e-9)) << times;
    }
  }
}

TEST(Footprint, JointKindsAreAllPairsThatSomeLinkIs) {
  RandomCollectives random(2);
  for (int i = 0; i < 100; ++i) {
    const Cluster cluster = random.cluster(8, 8);
    CostCache cache(cluster);
    std::vector<const CollectiveCost*> costs;
    for (int c = random.number(1, 3); c >= 0; --c) {
      costs.push_back(&cache.cost(random.collective(cluster)));
    }
    std::set<std::vector<int>> expected;
    for (int id = 0; id < Network(cluster).link_count(); ++id) {
      std::vector<int> kinds;
      for (const auto* cost : costs) {
        kinds.push_back(cost->footprint->kind_of_link()[static_cast<std::size_t>(id)]);
      }
      if (*std::max_element(kinds.begin(), kinds.end()) >= 0) expected.insert(kinds);
    }
    const auto told = joint_kinds(costs);
    EXPECT_EQ(std::set(told.begin(), told.end()), expected);
    EXPECT_EQ(told.size(), expected.size()) << "each once";
  }
  EXPECT_TRUE(joint_kinds({}).empty());
}

// The example of footprint.h.
TEST(Footprint, ARingOverNodesOfTwoByHand) {
  for (const int nodes : {8, 1024}) {
    const Network network(two_tier_cluster(nodes, 2));
    const Groups world = world_group(2 * nodes);
    const Footprint footprint(
        network, world, find_algorithm("ring")->edges(CollectiveKind::kAllReduce, world.size));
    EXPECT_EQ(footprint.link_kinds(), 2U);
    EXPECT_EQ(std::ranges::count(footprint.kind_of_link(), 0), 4 * nodes);
    EXPECT_EQ(std::ranges::count(footprint.kind_of_link(), 1), 2 * nodes);
    ASSERT_EQ(footprint.ways().size(), 2U);
    EXPECT_EQ(footprint.ways()[0].links, (std::vector<int>{0}));
    EXPECT_EQ(footprint.ways()[1].links, (std::vector<int>{0, 1}));
    EXPECT_EQ(footprint.rank_classes(), 2U);
    ASSERT_EQ(footprint.sets().size(), 1U);
    const SetFootprint& set = footprint.sets().front();
    EXPECT_EQ(set.load, (std::vector<std::pair<int, int>>{{0, 1}, {1, 1}}));
    EXPECT_TRUE(set.messages == (std::vector<TransferKind>{{0, 1, 0}, {1, 0, 1}}));
  }
}

// The point of folding: what is kept does not grow with the ranks.
TEST(Footprint, ThousandsOfRanksHaveFewKinds) {
  const auto kinds = [](const char* algorithm, int nodes) {
    const Cluster cluster = two_tier_cluster(nodes, 8);
    const Groups world = world_group(cluster.ranks());
    const auto* row = find_algorithm(algorithm);
    const Footprint footprint(Network(cluster), world,
                              row->edges(CollectiveKind::kAllReduce, world.size));
    return std::pair(footprint.link_kinds(), footprint.rank_classes());
  };
  for (const char* algorithm : {"ring", "to_one"}) {
    EXPECT_EQ(kinds(algorithm, 1024), kinds(algorithm, 64)) << algorithm;
  }
  EXPECT_EQ(kinds("halving_doubling", 1024), (std::pair<std::size_t, std::size_t>(2, 1)));
  EXPECT_EQ(kinds("ring", 1024).second, 8U);
  // Two trees at once: links by their height; the ranks themselves are hardly ever alike.
  EXPECT_LT(kinds("double_binary_tree", 1024).first, 300U);
}

}  // namespace
}  // namespace syncline::collective
