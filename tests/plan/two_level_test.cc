// Parameters sharded inside groups that are replicas of each other: by which collectives, on which
// streams, in which micro-batches; times by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "core/cost.h"
#include "core/metrics.h"
#include "tests/plan/planned.h"

namespace syncline::plan {
namespace {

using collective::CollectiveKind;
using test::cluster_of;
using test::tensor_of;

// Two gradients of 7 and 10 elements; a node has four ranks.
Workload odd() {
  Workload workload;
  workload.forward = 2e-3;
  workload.update = 1e-3;
  workload.tensors = {tensor_of("b.w", {7}), tensor_of("a.w", {10})};
  for (auto& tensor : workload.tensors) tensor.backward = 1e-3;
  return workload;
}

Strategy two_level(int group) {
  Strategy strategy = in_blocks(Hierarchy::Form::kSharded, group);
  strategy.exchange = Strategy::Exchange::kSharded;
  return strategy;
}

TEST(TwoLevel, ReducesInsideSumsAcrossAndGathersInside) {
  const Plan plan = make_plan(odd(), cluster_of(2, 4), two_level(4));
  for (const int bucket : {0, 1}) {
    const auto legs = collectives_of(plan, bucket);
    const std::int64_t part = bucket == 0 ? 2 : 3;  // of 7 and of 10 elements, on each of four
    using enum CollectiveKind;
    EXPECT_EQ(each(legs, &collective::Collective::kind),
              (std::vector{kReduceScatter, kAllReduce, kAllGather}));
    const auto blocks = collective::block_groups(8, 4);
    EXPECT_EQ(each(legs, &collective::Collective::groups),
              (std::vector{blocks, collective::shard_groups(8, 4), blocks}));
    EXPECT_EQ(each(legs, &collective::Collective::elements),
              (std::vector<std::int64_t>{4 * part, part, 4 * part}));
  }
  // Each rank updates its part of four.
  EXPECT_DOUBLE_EQ(seconds_of(ops_of<Compute>(plan).back()->work), 1e-3 / 4);
}

// One group is plain sharding; groups of one rank are replicas that hold everything.
TEST(TwoLevel, ItsEndsAreShardingAndAllReduce) {
  const Workload workload = odd();
  const Cluster cluster = cluster_of(2, 4);
  Strategy flat = two_level(8);
  flat.hierarchy = {};
  const auto same = [](const Plan& a, const Plan& b) {
    const auto what = [](const Op& op) {
      const auto* sent = std::get_if<collective::Collective>(&op.work);
      std::optional<std::tuple<CollectiveKind, Bytes, int>> exchanged;
      if (sent != nullptr) exchanged = {sent->kind, sent->bytes(), sent->groups.size};
      return std::tuple(op.stream, op.after, seconds_of(op.work), exchanged);
    };
    EXPECT_EQ(each(a.ops, what), each(b.ops, what));
  };
  same(make_plan(workload, cluster, two_level(8)), make_plan(workload, cluster, flat));
  same(make_plan(workload, cluster, two_level(1)), make_plan(workload, cluster, {}));
}

TEST(TwoLevel, AcrossOnAStreamOfItsOwnDelaysNoReduceScatter) {
  Strategy strategy = two_level(4);
  strategy.traits.across_stream = true;
  const Plan plan = make_plan(odd(), cluster_of(2, 4), strategy);
  EXPECT_EQ(communication_streams(plan), 2);
  for (const Op* op : ops_of<collective::Collective>(plan)) {
    const bool across = collective_in(*op).kind == CollectiveKind::kAllReduce;
    EXPECT_EQ(op->stream, across ? 2 : 1);
    const auto before = static_cast<OpId>(op - plan.ops.data()) - 1;
    if (across) {
      EXPECT_EQ(op->after, std::vector<OpId>{before});
    }
  }
  strategy.overlap = false;
  EXPECT_EQ(make_plan(odd(), cluster_of(2, 4), strategy).streams, 1);
}

TEST(TwoLevel, AcrossOnlyInTheLastMicroBatch) {
  Workload workload = odd();
  workload.micro_batches = 3;
  Strategy strategy = two_level(4);
  strategy.each_micro_batch = true;
  const auto count = [&](CollectiveKind kind) {
    return std::ranges::count(collectives_of(make_plan(workload, cluster_of(2, 4), strategy)), kind,
                              &collective::Collective::kind);
  };
  EXPECT_EQ(count(CollectiveKind::kAllReduce), 3 * 2);
  strategy.traits.across_last = true;
  EXPECT_EQ(count(CollectiveKind::kAllReduce), 2);
  EXPECT_EQ(count(CollectiveKind::kReduceScatter), 3 * 2);
  // An all-reduce in two levels likewise: replicas differ until the last micro-batch.
  strategy.exchange = Strategy::Exchange::kAllReduce;
  EXPECT_EQ(count(CollectiveKind::kAllReduce), 2);
  EXPECT_EQ(count(CollectiveKind::kAllGather), 3 * 2);
}

// The forward pass gathers among all, the backward pass from the second copy, in pairs.
TEST(TwoLevel, TheBackwardPassGathersASecondCopyInItsGroup) {
  Workload workload = odd();
  workload.tensors.push_back(tensor_of("first.w", {16}));
  Strategy strategy = regathering();
  strategy.traits.regather_group = 2;
  const Plan plan = make_plan(workload, cluster_of(2, 4), strategy);
  std::vector<int> sizes;
  for (const auto* op : ops_of<collective::Collective>(plan)) {
    const auto& collective = collective_in(*op);
    if (collective.kind == CollectiveKind::kAllGather) sizes.push_back(collective.groups.size);
    EXPECT_EQ(op->gathers, collective.kind == CollectiveKind::kAllGather);
  }
  EXPECT_EQ(sizes, (std::vector<int>{2, 2, 8, 8, 8}));
}

// Links without latency, a node's faster than the network. 4 MB each.
TEST(TwoLevel, MatchesAHandComputedExample) {
  Cluster cluster = cluster_of(2, 2);
  cluster.library = Library::kLinks;
  for (auto& tier : cluster.tiers) tier.latency = 0;
  cluster.tiers.front().bandwidth = 4e9;
  cluster.tiers.back().bandwidth = 1e9;
  Workload workload;
  workload.forward = 1e-3;
  workload.tensors = {tensor_of("b.w", {1000000}), tensor_of("a.w", {1000000})};
  for (auto& tensor : workload.tensors) tensor.backward = 1e-3;
  Strategy strategy = two_level(2);
  const auto step = [&] {
    const Plan plan = make_plan(workload, cluster, strategy);
    const auto model = run::make_model_executor({cluster, {}, 1});
    return measure::step_time_of(plan, model->run(plan, {}, 3).timeline, 1);
  };
  collective::CostCache cache(cluster);
  const auto legs = collectives_of(make_plan(workload, cluster, strategy), 0);
  const Seconds scatter = cache.time(legs[0]);
  const Seconds across = cache.time(legs[1]);
  const Seconds gather = cache.time(legs[2]);
  ASSERT_GT(across, 1e-3);
  ASSERT_GT(scatter, 1e-4);
  // One after the other behind the first gradient, which is there after 2 ms.
  EXPECT_NEAR(step(), 2e-3 + 2 * (scatter + across) + 2 * gather, 1e-9);
  // The second reduce-scatter runs inside the node while the first sum goes across.
  strategy.traits.across_stream = true;
  const Seconds second = std::max(3e-3, 2e-3 + scatter) + scatter;
  ASSERT_LT(second, 2e-3 + scatter + across);
  EXPECT_NEAR(step(), 2e-3 + scatter + 2 * across + 2 * gather, 1e-6);
}

}  // namespace
}  // namespace syncline::plan
