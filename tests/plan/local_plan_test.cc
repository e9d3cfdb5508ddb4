// A period of LocalSGD in time: closed forms of DiLoCo, of fragments that travel beside training
// and of groups that exchange gradients inside.
#include "core/plan/local_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/cost.h"
#include "core/plan/planner.h"
#include "core/sim/sim_executor.h"
#include "tests/plan/planned.h"

namespace syncline::plan {
namespace {

using test::cluster_of;

constexpr Seconds kStep = 0.017;  // of five(): 10 ms forward, 5 ms backward, 2 ms update

Workload bare() {
  Workload workload = five();
  workload.buffers.clear();
  return workload;
}

Strategy diloco(std::int64_t period, int fragments = 1, std::int64_t delay = 0) {
  Strategy strategy = local_strategy(period);
  strategy.fusion.rule = Fusion::Rule::kOne;
  strategy.local_sgd.outer.optimizer = Outer::Optimizer::kNesterov;
  strategy.local_sgd.fragments = fragments;
  strategy.local_sgd.delay = delay;
  return strategy;
}

Cluster slow(BytesPerSecond bandwidth, Seconds latency = 1e-3) {
  Cluster cluster = cluster_of(4, 1);
  cluster.tiers[0].bandwidth = bandwidth;
  cluster.tiers[0].latency = latency;
  return cluster;
}

// A ring over four ranks: six messages of a quarter, one behind the other.
Seconds ring(double bytes, const Cluster& cluster) {
  return 6 * (cluster.tiers[0].latency + bytes / 4 / cluster.tiers[0].bandwidth);
}

Seconds period_of(const Plan& plan, const Cluster& cluster, bool simulated = false) {
  const auto make_executor = simulated ? sim::make_sim_executor : run::make_model_executor;
  return last_period(*make_executor({cluster, {}, 1}), plan, 4);
}

Seconds period_of(const Strategy& strategy, const Cluster& cluster, bool simulated = false) {
  return period_of(make_plan(bare(), cluster, strategy), cluster, simulated);
}

TEST(LocalPlan, DiLoCoIsTheStepsAndOneAveraging) {
  for (const BytesPerSecond bandwidth : {1e4, 1e5, 1e7}) {
    const Cluster cluster = slow(bandwidth);
    const Seconds expected = 10 * kStep + ring(2000, cluster);
    EXPECT_NEAR(period_of(diloco(10), cluster), expected, 1e-9);
    EXPECT_NEAR(period_of(diloco(10), cluster, true), expected, 1e-3 * expected);
  }
}

// Three of five gradients, then two: each fragment holds training up for what its steps of delay
// leave of its exchange.
TEST(LocalPlan, FragmentsTravelDuringTheStepsOfTheirDelay) {
  for (const BytesPerSecond bandwidth : {3e3, 1e4, 3e4, 1e5, 1e7}) {
    for (const int delay : {0, 1, 3, 4}) {
      const Cluster cluster = slow(bandwidth);
      Seconds expected = 0;
      for (const double bytes : {1200.0, 800.0}) {
        expected += (5 - delay) * kStep + std::max(delay * kStep, ring(bytes, cluster));
      }
      EXPECT_NEAR(period_of(diloco(10, 2, delay), cluster), expected, 1e-9)
          << bandwidth << " " << delay;
      EXPECT_NEAR(period_of(diloco(10, 2, delay), cluster, true), expected, 2e-3 * expected)
          << bandwidth << " " << delay;
    }
  }
}

TEST(LocalPlan, WithoutDelayOrFragmentsItIsAveraging) {
  const Cluster cluster = slow(1e5);
  for (const std::int64_t period : {1, 7}) {
    Strategy plain = local_strategy(period);
    plain.fusion.rule = Fusion::Rule::kOne;
    EXPECT_DOUBLE_EQ(period_of(diloco(period), cluster), period_of(plain, cluster));
  }
}

// Two of four ranks compute half as fast: a step is theirs, unless a period has fewer of them
// there.
TEST(LocalPlan, BlocksOfRanksTakeTheStepsOfTheirSpeed) {
  Cluster cluster = slow(1e5);
  const Seconds sent = ring(2000, cluster);
  cluster.speeds = {1, 0.5};
  for (const bool simulated : {false, true}) {
    const double within = simulated ? 1e-3 : 1e-9;
    Strategy strategy = diloco(12);
    EXPECT_NEAR(period_of(strategy, cluster, simulated), 24 * kStep + sent, within);
    strategy.local_sgd.periods = {16, 8};  // 12 in the mean, and both are busy for 16 steps' time
    EXPECT_NEAR(period_of(strategy, cluster, simulated), 16 * kStep + sent, within);
    strategy.local_sgd.periods = {12, 12};
    EXPECT_NEAR(period_of(strategy, cluster, simulated), 24 * kStep + sent, within);
    // Gradients are summed when the slower ranks have theirs.
    Cluster alike = cluster;
    alike.speeds.clear();
    Workload slower = scale_computation(bare(), 2);
    EXPECT_NEAR(period_of(make_plan(bare(), cluster, Strategy{}), cluster, simulated),
                period_of(make_plan(slower, alike, Strategy{}), alike, simulated), 1e-12);
  }
  EXPECT_EQ(block_times(cluster, diloco(12).local_sgd), (std::vector<double>{1, 2}));
}

// More steps of delay, a faster link or a longer period never make a step longer.
TEST(LocalPlan, StepsOnlyShorten) {
  for (const int fragments : {1, 2, 5}) {
    Seconds before = 1e9;
    for (std::int64_t delay = 0; delay < 20 / fragments; ++delay) {
      const Seconds now = period_of(diloco(20, fragments, delay), slow(1e4));
      EXPECT_LE(now, before + 1e-12);
      before = now;
    }
    before = 1e9;
    for (const std::int64_t period : {20, 40, 80}) {
      const Seconds now =
          period_of(diloco(period, fragments, 1), slow(1e4)) / static_cast<double>(period);
      EXPECT_LE(now, before + 1e-12);
      before = now;
    }
  }
}

// The outer step moves memory: its gradient is made of two copies of the parameters (three times
// their bytes), nesterov reads and writes them and its momentum (six times).
TEST(LocalPlan, TheOuterStepTakesTheDevicesMemoryRate) {
  Cluster cluster = slow(1e7);
  const Seconds free = period_of(diloco(10), cluster);
  cluster.device.memory = 1e6;
  EXPECT_NEAR(period_of(diloco(10), cluster), free + 9 * 2000 / 1e6, 1e-9);
  Strategy sgd = diloco(10);
  sgd.local_sgd.outer.optimizer = Outer::Optimizer::kSgd;
  EXPECT_NEAR(period_of(sgd, cluster), free + 7 * 2000 / 1e6, 1e-9);
  // A rank that keeps a share of its own parameters reads those too.
  sgd.local_sgd.outer.mix = 0.5;
  EXPECT_NEAR(period_of(sgd, cluster), free + 8 * 2000 / 1e6, 1e-9);
  Strategy mixed = diloco(10);
  mixed.local_sgd.outer.mix = 0.5;
  EXPECT_NEAR(period_of(mixed, cluster), free + 10 * 2000 / 1e6, 1e-9);
}

TEST(LocalPlan, BlocksOfLowPrecisionTravel) {
  // 500 values: four blocks of 128 bytes and a scale of four.
  Strategy strategy = diloco(10);
  strategy.compression.codec = "int8";
  const Cluster cluster = slow(1e4);
  EXPECT_NEAR(period_of(strategy, cluster), 10 * kStep + ring(4 * 132, cluster), 1e-9);
  strategy.compression.codec = "int4";
  EXPECT_NEAR(period_of(strategy, cluster), 10 * kStep + ring(4 * 68, cluster), 1e-9);
  // An all-to-all, whose messages go at once, and half a ring.
  strategy.algorithm = "all_to_all";
  EXPECT_NEAR(period_of(strategy, cluster),
              10 * kStep + ring(4 * 68, cluster) - 2 * cluster.tiers[0].latency, 1e-9);
}

std::set<int> nodes_of(const collective::Groups& groups, int group, int gpus) {
  std::set<int> nodes;
  for (int m = 0; m < groups.size; ++m) nodes.insert(groups.rank(group, m) / gpus);
  return nodes;
}

Strategy in_nodes(Strategy::Exchange exchange) {
  Strategy strategy = diloco(3);
  strategy.local_sgd.subgroup = 4;
  strategy.exchange = exchange;
  strategy.traits.sharded = FrameworkTraits::Sharded::kParameters;
  strategy.fusion.rule = Fusion::Rule::kNone;
  return strategy;
}

TEST(LocalPlan, GradientsStayInTheirGroupAndPartsCross) {
  const Cluster cluster = cluster_of(3, 4);
  for (const auto exchange : {Strategy::Exchange::kAllReduce, Strategy::Exchange::kSharded}) {
    const Plan plan = make_plan(five(), cluster, in_nodes(exchange));
    EXPECT_EQ(plan.replicas, 3);
    int across = 0;
    int gathered = 0;
    int inside = 0;
    for (const auto& collective : collectives_of(plan)) {
      const bool averaged = plan.buckets[index(collective.bucket)].averaged;
      const bool crosses = nodes_of(collective.groups, 0, 4).size() > 1;
      EXPECT_TRUE(averaged || !crosses);
      EXPECT_EQ(collective.groups.count * collective.groups.size, 12);
      if (crosses) {
        EXPECT_EQ(collective.groups, collective::shard_groups(12, 4));
        EXPECT_EQ(collective.elements, 125);
      }
      across += crosses ? 1 : 0;
      gathered += averaged && !crosses ? 1 : 0;
      inside += averaged ? 0 : 1;
    }
    const bool sharded = exchange == Strategy::Exchange::kSharded;
    EXPECT_EQ(across, 1);
    EXPECT_EQ(gathered, sharded ? 0 : 1);  // a rank that holds its shard alone needs no more
    EXPECT_EQ(inside, 3 * 5 * (sharded ? 2 : 1));
  }
}

// Three steps of a group take three times what the group takes by itself.
TEST(LocalPlan, AGroupsStepIsThatOfTheGroupAsACluster) {
  const Cluster cluster = cluster_of(3, 4);
  for (const bool cross : {false, true}) {
    Strategy strategy = in_nodes(Strategy::Exchange::kSharded);
    strategy.cross_step = cross;
    strategy.regather = true;
    const Plan plan = make_plan(bare(), cluster, strategy);
    strategy.local_sgd = {};
    const Plan step = make_plan(bare(), cluster_of(1, 4), strategy);
    const Seconds alone = period_of(step, cluster_of(1, 4));
    collective::CostCache cache(cluster);
    Seconds outer = 0;
    for (const auto& collective : collectives_of(plan)) {
      if (plan.buckets[index(collective.bucket)].averaged) outer += cache.time(collective);
    }
    const Seconds found = period_of(plan, cluster);
    // The last step's gathers may hide behind the outer exchange, the next one's may not.
    EXPECT_LE(found, 3 * alone + outer + 2e-5) << cross;
    EXPECT_GE(found, 3 * alone - 1e-5) << cross;
  }
}

// What travels for steps must not queue ahead of gradients inside the group.
TEST(LocalPlan, ADelayedFragmentHasAStreamOfItsOwn) {
  Cluster cluster = cluster_of(3, 4);
  cluster.tiers[1].bandwidth = 1e4;
  Strategy strategy = in_nodes(Strategy::Exchange::kAllReduce);
  strategy.local_sgd.period = 10;
  const Seconds held = period_of(make_plan(bare(), cluster, strategy), cluster);
  strategy.local_sgd.delay = 9;
  const Plan plan = make_plan(bare(), cluster, strategy);
  EXPECT_EQ(plan.streams, 3);
  const Seconds beside = period_of(plan, cluster);
  // 500 bytes a rank among three, two rounds of four messages through one port.
  EXPECT_GT(held - beside, 9 * kStep * 0.99);
}

TEST(LocalPlan, FragmentsAreEvenAndContainEveryParameterOnce) {
  const Workload workload = test::shipped_workload("resnet50_v100.json");
  for (const int fragments : {1, 2, 3, 8, 50}) {
    const Plan plan = make_plan(workload, cluster_of(2, 1), diloco(100, fragments));
    std::vector<int> seen(workload.tensors.size(), 0);
    Bytes most = 0;
    Bytes all = 0;
    for (const Bucket& bucket : plan.buckets) {
      for (const int tensor : bucket.tensors) ++seen[index(tensor)];
      most = std::max(most, bucket.bytes);
      all += bucket.bytes;
    }
    EXPECT_EQ(static_cast<int>(plan.buckets.size()), fragments);
    EXPECT_EQ(std::set<int>(seen.begin(), seen.end()), std::set<int>{1});
    const Bytes largest_tensor = 2048 * 512 * 9 * 4;
    EXPECT_LE(most, all / fragments + largest_tensor);
  }
}

}  // namespace
}  // namespace syncline::plan
