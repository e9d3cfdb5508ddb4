// One table: what the closed form, the merged simulation and the step-by-step simulation say of the
// same collectives, and how far they are apart.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "core/cost.h"
#include "tests/plan/planned.h"
#include "tests/support/random_collectives.h"
#include "tests/support/simulated.h"

namespace syncline::sim {
namespace {

struct Times {
  Seconds model = 0;
  Seconds merged = 0;
  Seconds unfolded = 0;
  Seconds step = 0;
};

Times times_of(const Cluster& cluster, const plan::Plan& plan) {
  return {modelled(cluster, plan), simulated(cluster, plan, Granularity::kMerged),
          simulated(cluster, plan, Granularity::kMerged, false),
          simulated(cluster, plan, Granularity::kStep, false)};
}

double apart(Seconds a, Seconds b) { return 100 * std::fabs(a / b - 1); }

// The worst disagreement of a family of cases, for the printed table.
struct Worst {
  double model_step = 0;
  double model_merged = 0;
  double merged_step = 0;
  double fold = 0;
  int cases = 0;

  void add(const Times& t) {
    model_step = std::max(model_step, apart(t.model, t.step));
    model_merged = std::max(model_merged, apart(t.model, t.merged));
    merged_step = std::max(merged_step, apart(t.merged, t.step));
    fold = std::max(fold, apart(t.merged, t.unfolded));
    ++cases;
  }
};

void print_head() {
  std::printf("%-46s %6s %16s %14s %15s %14s\n", "largest difference, %", "cases", "model-merged",
              "model-step", "merged-step", "fold-unfold");
}

void print_row(const std::string& name, const Worst& worst) {
  std::printf("%-46s %6d %16.3f %14.3f %15.3f %14.3f\n", name.c_str(), worst.cases,
              worst.model_merged, worst.model_step, worst.merged_step, worst.fold);
}

const std::vector<int> kRanks{2, 3, 4, 8, 16, 31, 64};
// 1 KB to 1 GB, in fp32 elements.
const std::vector<std::int64_t> kElements{256, 8000, 250000, 8000000, 250000000};

TEST(Agreement, EveryAlgorithmAgreesOnAnIdleNetwork) {
  print_head();
  for (const auto& algorithm : collective::algorithms()) {
    for (const auto kind : collective::kAllCollectiveKinds) {
      Worst worst;
      for (const int ranks : kRanks) {
        if (!algorithm.fits(kind, ranks)) continue;
        for (const auto elements : kElements) {
          const plan::Plan plan = plan_of(
              ranks, {{1, {kind, &algorithm, collective::world_group(ranks), elements, 4, 0}}});
          const Times times = times_of(flat_cluster(ranks), plan);
          SCOPED_TRACE(testing::Message()
                       << algorithm.name << " " << collective::to_string(kind) << " on " << ranks
                       << " ranks, " << elements << " elements");
          EXPECT_LT(apart(times.model, times.merged), 1.0);
          EXPECT_LT(apart(times.model, times.step), 1.0);
          EXPECT_LT(apart(times.merged, times.step), 2.0);
          EXPECT_LT(apart(times.merged, times.unfolded), 0.1);
          worst.add(times);
        }
      }
      if (worst.cases > 0) {
        print_row(std::string(algorithm.name) + ", " + std::string(collective::to_string(kind)) +
                      ", one tier",
                  worst);
      }
    }
  }
}

// Nodes of several GPUs: neighbours in a node talk faster than across nodes, and several messages
// may leave a node through one port.
TEST(Agreement, OnTwoTiers) {
  print_head();
  for (const auto& algorithm : collective::algorithms()) {
    Worst worst;
    for (const auto& [nodes, gpus] : {std::pair(2, 2), {4, 4}, {2, 8}, {8, 8}}) {
      const int ranks = nodes * gpus;
      for (const auto elements : kElements) {
        const plan::Plan plan = all_reduce_plan(ranks, std::string(algorithm.name), elements);
        const Times times = times_of(two_tier_cluster(nodes, gpus), plan);
        SCOPED_TRACE(testing::Message() << algorithm.name << " on " << nodes << " x " << gpus
                                        << ", " << elements << " elements");
        EXPECT_LT(apart(times.model, times.merged), 1.0);
        EXPECT_LT(apart(times.model, times.step), 3.0);
        worst.add(times);
      }
    }
    print_row(std::string(algorithm.name) + ", all_reduce, two tiers", worst);
  }
}

Strategy low_precision(const char* codec) {
  Strategy strategy = plan::compressing(codec, Fusion::Rule::kOne);
  strategy.algorithm = "all_to_all";
  return strategy;
}

// Parts of S bytes cross once in the all-to-all and once in the gather, with the latencies of one
// round and of the gather's. In all a quarter of what a ring of fp32 takes, but for scales.
TEST(Agreement, LowPrecisionIsAnAllToAllAndAGather) {
  Workload workload;
  workload.tensors = {test::tensor_of("w", {1 << 24})};
  for (const int ranks : {2, 3, 8, 31}) {
    const Cluster cluster = flat_cluster(ranks);
    const Tier& tier = cluster.tiers.front();
    const plan::Plan plan = plan::make_plan(workload, cluster, low_precision("int8"));
    collective::CostCache costs(cluster);
    const auto legs =
        plan::each(plan::collectives_of(plan), [&](const auto& leg) { return costs.time(leg); });
    const double bytes = (1 << 24) / 128 * 132.0;
    const double share = (ranks - 1.0) / ranks;
    ASSERT_EQ(legs.size(), 2U);
    EXPECT_NEAR(legs[0], tier.latency + share * bytes / tier.bandwidth, 1e-9 * legs[0]);
    EXPECT_NEAR(legs[1], (ranks - 1) * tier.latency + share * bytes / tier.bandwidth,
                1e-9 * legs[1]);
    const plan::Plan whole =
        plan::make_plan(workload, cluster, plan::strategy_with(Fusion::Rule::kOne));
    const Times low = times_of(cluster, plan);
    const Times full = times_of(cluster, whole);
    EXPECT_NEAR(low.step / full.step, 132.0 / 512, 0.004);
    EXPECT_LT(apart(low.model, low.step), 0.1);
    EXPECT_LT(apart(low.merged, low.step), 0.1);
  }
}

// On a hundred clusters of one to three tiers, some with thin switches or capped flows, in one
// level or two.
TEST(Agreement, LowPrecisionOnRandomClusters) {
  print_head();
  test::RandomCollectives random(17);
  Worst worst;
  for (int i = 0; i < 100; ++i) {
    const Cluster cluster = random.cluster(8, 4);
    Strategy strategy = low_precision(i % 2 == 0 ? "int8" : "int4");
    if (i % 3 == 0 && cluster.gpus_per_node > 1 && cluster.nodes > 1) {
      strategy.hierarchy.form = Hierarchy::Form::kSharded;
      strategy.hierarchy.group_size = cluster.gpus_per_node;
    }
    Workload workload;
    workload.tensors = {test::tensor_of("w", {random.number(1, 40) * std::int64_t{100'000}})};
    const Times times = times_of(cluster, plan::make_plan(workload, cluster, strategy));
    SCOPED_TRACE(testing::Message() << "cluster " << i << " of " << cluster.ranks() << " ranks");
    EXPECT_LT(apart(times.model, times.merged), 1.0);
    EXPECT_LT(apart(times.model, times.step), 5.0);
    worst.add(times);
  }
  print_row("int8 and int4, random clusters", worst);
}

// Several streams at once, all alike or the first longer than the others. Payloads that are mostly
// latency mistake between each other's latencies step by step; the merged grain and the model put a
// collective's latency first, which the printed rows show.
TEST(Agreement, ConcurrentStreamsShareTheLinks) {
  print_head();
  for (const auto& algorithm : collective::algorithms()) {
    for (const bool tiers : {false, true}) {
      const Cluster cluster = tiers ? two_tier_cluster(4, 4) : flat_cluster(8);
      const int ranks = cluster.ranks();
      for (const std::int64_t elements : {std::int64_t{8000}, std::int64_t{2500000}}) {
        const bool large = elements > 100000;
        Worst worst;
        for (const int streams : {2, 3, 4}) {
          for (const double uneven : {1.0, 0.4}) {
            std::vector<std::pair<plan::StreamId, collective::Collective>> collectives;
            for (int s = 1; s <= streams; ++s) {
              const double share = s == 1 ? 1.0 : uneven;
              const auto count = static_cast<std::int64_t>(static_cast<double>(elements) * share);
              collectives.emplace_back(s, all_reduce(ranks, std::string(algorithm.name), count));
            }
            const Times times = times_of(cluster, plan_of(ranks, collectives));
            SCOPED_TRACE(testing::Message() << algorithm.name << ", " << streams << " streams, "
                                            << elements << " elements, others " << uneven
                                            << (tiers ? ", two tiers" : ", one tier"));
            EXPECT_LT(apart(times.model, times.merged), 5.0);
            if (large) {
              EXPECT_LT(apart(times.merged, times.step), 3.0);
            }
            worst.add(times);
          }
        }
        print_row(std::string(algorithm.name) + ", 2-4 streams of " + (large ? "10 MB" : "32 KB") +
                      (tiers ? ", two tiers" : ", one tier"),
                  worst);
      }
    }
  }
}

// Groups whose messages all cross the same tier, on a cluster that also has a faster one: leaders
// of the nodes, shards across the nodes. The rule of core/collective/critical_path.h, that a
// message holds its sender for the fastest tier's latency, holds for them as for any other group.
TEST(OneTierGroups, AmongLeadersModelAndStepAgree) {
  const Cluster cluster = two_tier_cluster(8, 4);  // 5 us inside a node, 20 us between nodes
  for (const auto& algorithm : collective::algorithms()) {
    for (const auto kind : collective::kAllCollectiveKinds) {
      if (!algorithm.fits(kind, 8)) continue;
      for (const std::int64_t elements : {8000, 250000, 8000000}) {
        const plan::Plan plan =
            plan_of(32, {{1, {kind, &algorithm, collective::leader_group(32, 4), elements, 4, 0}}});
        const Times times = times_of(cluster, plan);
        SCOPED_TRACE(testing::Message() << algorithm.name << " " << collective::to_string(kind)
                                        << ", " << elements << " elements");
        EXPECT_NEAR(times.merged, times.model, 0.01 * times.model);
        EXPECT_NEAR(times.step, times.model, 0.01 * times.model);
        EXPECT_NEAR(simulated(cluster, plan, Granularity::kStep), times.step, 1e-9 * times.step);
      }
    }
  }
}

// The tier inside the node carries nothing of it: as long as it is the faster one, how much faster
// is of no importance to a group of leaders that does not pipeline.
TEST(OneTierGroups, ANearlyEqualTierIsNoStepInTheCost) {
  for (const auto& algorithm : collective::algorithms()) {
    Cluster cluster = two_tier_cluster(4, 4);
    const plan::Plan plan = all_reduce_plan(16, std::string(algorithm.name), 2000000);
    const Tier inter = cluster.tiers[1];
    cluster.tiers[0].latency = inter.latency;
    const Seconds equal = modelled(cluster, plan);
    cluster.tiers[0].latency = inter.latency * (1 - 1e-9);
    const Seconds nearly = modelled(cluster, plan);
    EXPECT_NEAR(nearly, equal, 1e-6 * equal) << algorithm.name;
  }
}

}  // namespace
}  // namespace syncline::sim
