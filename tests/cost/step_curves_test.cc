// Curves of measured steps: on a straight line they are the closed form, on any curve a collective
// is the sum of its rounds, and the tier that is crossed decides.
#include "core/cost/cost_model_provider.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/collective/collective.h"
#include "core/cost.h"
#include "formats/input/read_cluster.h"
#include "formats/json/reader.h"
#include "tests/support/plans.h"
#include "tests/support/small_plans.h"

namespace syncline::cost {
namespace {

using test::cluster_of;

StepCurve line(Seconds latency, BytesPerSecond bandwidth) {
  StepCurve curve;
  for (const double bytes : {0.0, 1e3, 1e6}) curve.push_back({bytes, latency + bytes / bandwidth});
  return curve;
}

// An all-reduce by a ring.
collective::Collective ring_of(const collective::Groups& groups, std::int64_t elements) {
  return collective_of(collective::CollectiveKind::kAllReduce, "ring", groups, elements);
}

TEST(StepCurve, IsStraightBetweenPointsFlatBelowAndGoesOnAbove) {
  const StepCurve curve = {{100, 1e-3}, {200, 2e-3}, {400, 3e-3}};
  for (const auto& [bytes, seconds] :
       {std::pair{0, 1e-3}, {100, 1e-3}, {150, 1.5e-3}, {400, 3e-3}, {600, 4e-3}}) {
    EXPECT_DOUBLE_EQ(step_time(curve, bytes), seconds) << bytes;
  }
  EXPECT_DOUBLE_EQ(slope_of(curve), 200 / 1e-3);
}

TEST(StepCostModel, IsTheClosedFormOnALine) {
  constexpr Seconds kLatency = 2e-5;
  constexpr BytesPerSecond kBandwidth = 1e9;
  for (const int ranks : {2, 3, 4, 8}) {
    Cluster cluster = cluster_of(ranks, 1);
    cluster.tiers[0].latency = kLatency;
    cluster.tiers[0].bandwidth = kBandwidth;
    const CollectiveCostModel cost_model = step_cost_model(cluster, {line(kLatency, kBandwidth)});
    for (const auto& algorithm : collective::algorithms()) {
      for (const auto kind : collective::kAllCollectiveKinds) {
        if (!algorithm.fits(kind, ranks)) continue;
        for (const std::int64_t elements : {std::int64_t{24}, std::int64_t{2400000}}) {
          const collective::Collective c =
              collective_of(kind, algorithm.name.data(), collective::world_group(ranks), elements);
          collective::CostCache links(cluster);
          const Seconds expected = links.time(c);
          // A pipeline's first and last rounds do not fill every port: the links' closed form
          // counts their latencies along the longest chain of messages, the cost model round by
          // round.
          EXPECT_NEAR(cost_model(c)->time / expected, 1,
                      algorithm.name == "double_binary_tree" ? 0.35 : 1e-9)
              << algorithm.name << " " << collective::to_string(kind) << " " << ranks << " "
              << elements;
        }
      }
    }
  }
}

TEST(StepCostModel, TheOutermostTierThatIsCrossedDecides) {
  const Cluster cluster = cluster_of(2, 2);
  const StepCurve inside = line(1e-5, 1e9);
  const StepCurve across = line(5e-5, 2e8);
  const CollectiveCostModel cost_model = step_cost_model(cluster, {inside, across});
  constexpr std::int64_t kElements = 1000000;
  const auto all_reduce = [&](const collective::Groups& groups) {
    return cost_model(ring_of(groups, kElements))->time;
  };
  EXPECT_DOUBLE_EQ(all_reduce(collective::block_groups(4, 2)),
                   2 * step_time(inside, kElements * 2));
  // Two groups share the uplink of their node.
  EXPECT_DOUBLE_EQ(all_reduce(collective::shard_groups(4, 2)),
                   2 * step_time(across, 2 * kElements * 2));
  EXPECT_DOUBLE_EQ(all_reduce(collective::leader_group(4, 2)),
                   2 * step_time(across, kElements * 2));
  EXPECT_DOUBLE_EQ(all_reduce(collective::world_group(4)), 6 * step_time(across, kElements));
}

// A recording repeated says the same of large messages, and another figure of small ones.
TEST(StepCostModel, IsLessSureOfSmallMessages) {
  const Cluster cluster = cluster_of(2, 1);
  const CollectiveCostModel cost_model = step_cost_model(cluster, {line(1e-3, 1e8)});
  const auto spread_of = [&](std::int64_t elements) {
    return cost_model(ring_of(collective::world_group(2), elements))->spread;
  };
  EXPECT_NEAR(spread_of(1), 0.3, 0.01);
  EXPECT_NEAR(spread_of(100'000'000), 0.03, 0.001);
  EXPECT_GT(spread_of(10'000), spread_of(100'000));
}

TEST(StepCostModel, LeavesWhatWasNotMeasuredToTheLinks) {
  const Cluster cluster = cluster_of(2, 2);
  const CollectiveCostModel cost_model = step_cost_model(cluster, {line(1e-5, 1e9), {}});
  EXPECT_TRUE(cost_model(ring_of(collective::block_groups(4, 2), 100)));
  EXPECT_FALSE(cost_model(ring_of(collective::world_group(4), 100)));
}

// Read from a cluster, the curve costs; the fixed cost comes on top.
TEST(StepCostModel, IsReadFromTheClusterFile) {
  const auto cluster_from = [](const char* steps) {
    const Json json = Json::parse(std::string(R"({"name": "c", "nodes": 2, "gpus_per_node": 1,
      "collective_overhead_us": 7,
      "inter": {"latency_us": 100, "bandwidth_gbps": 1, "measured_steps_us": )") +
                                  steps + "}}");
    return input::read_cluster(Reader(json, "c.json", ""));
  };
  const Cluster cluster = cluster_from("[[1000, 100], [2000, 104], [1002000, 8104]]");
  collective::CostCache cache(cluster);
  EXPECT_NEAR(cache.time(ring_of(collective::world_group(2), 750)), 7e-6 + 2 * 102e-6, 1e-12);

  for (const char* wrong :
       {"[[1000, 100]]", "[[1000, 100], [900, 200]]", "[[1, 2], [2, 1]]", "[[1, 2], \"x\"]",
        "[[1, 2, 3], [4, 5, 6]]", "7", "[[1000, 100], [2000, 100.1]]"}) {
    EXPECT_THROW(cluster_from(wrong), InputError) << wrong;
  }
}

}  // namespace
}  // namespace syncline::cost
