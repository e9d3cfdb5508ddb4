// How a plan uses its buckets: which the backward pass fills, which an operation of its own does,
// and which collectives are the first and the last.
#include "core/run/bucket_use.h"
#include "core/run/payload.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/plan/planned.h"

namespace syncline::run {
namespace {

using test::cluster_of;
using test::tensor_of;

struct Used {
  plan::Plan plan;
  std::vector<BucketUse> uses;
  std::vector<bool> views;
};

Used used(const Strategy& strategy, const Cluster& cluster) {
  Workload workload;
  workload.tensors = {tensor_of("a", {60}), tensor_of("b", {120}), tensor_of("c", {180})};
  Used result;
  result.plan = plan::make_plan(workload, cluster, strategy);
  result.uses = bucket_uses(result.plan);
  for (std::size_t b = 0; b < result.uses.size(); ++b) {
    const Payload layout(result.plan, static_cast<int>(b), 0, workload);
    result.views.push_back(is_view(result.uses[b], layout));
  }
  return result;
}

void expect_ends(const Used& used, std::size_t collectives) {
  for (std::size_t b = 0; b < used.uses.size(); ++b) {
    std::vector<plan::OpId> list;
    for (const auto* op : plan::ops_of<collective::Collective>(used.plan)) {
      if (index(plan::collective_in(*op).bucket) != b) continue;
      list.push_back(static_cast<plan::OpId>(op - used.plan.ops.data()));
    }
    ASSERT_EQ(list.size(), collectives);
    EXPECT_EQ(used.uses[b].collectives, list);
    EXPECT_EQ(used.uses[b].first, list.front());
    EXPECT_EQ(used.uses[b].last, list.back());
  }
}

TEST(BucketUse, DenseBucketsAreViews) {
  const Used dense = used({}, cluster_of(4, 1));
  EXPECT_EQ(dense.views, std::vector<bool>(3, true));
  for (const auto& use : dense.uses) EXPECT_FALSE(use.staged);
  expect_ends(dense, 1);
}

TEST(BucketUse, AHierarchyHasAFirstAndALastCollective) {
  const Used leaders = used(plan::in_blocks(Hierarchy::Form::kLeaders, 2), cluster_of(4, 1));
  EXPECT_EQ(leaders.views, std::vector<bool>(3, true));
  expect_ends(leaders, 3);
}

TEST(BucketUse, CopiedGradientsAreStaged) {
  Strategy strategy = plan::strategy_with(Fusion::Rule::kOne);
  strategy.bucket_copies = true;
  Cluster cluster = cluster_of(4, 1);
  cluster.device.memory = 1e9;
  const Used copied = used(strategy, cluster);
  ASSERT_EQ(copied.uses.size(), 1U);
  EXPECT_TRUE(copied.uses[0].staged);
  EXPECT_FALSE(copied.views[0]);
}

TEST(BucketUse, EncodedGradientsAreStaged) {
  for (const char* codec : {"dgc", "fp16"}) {
    Strategy strategy = plan::dgc_strategy(100);
    strategy.compression.codec = codec;
    strategy.compression.sparsity = {0.75};
    const Used encoded = used(strategy, cluster_of(2, 1));
    for (std::size_t b = 0; b < encoded.uses.size(); ++b) {
      const bool small = encoded.plan.buckets[b].codec == nullptr;
      EXPECT_EQ(encoded.uses[b].staged, !small) << codec << ", bucket " << b;
      EXPECT_EQ(encoded.views[b], small) << codec << ", bucket " << b;
    }
  }
}

// A bucket that is only scattered, or only gathered, keeps every rank's shards together, so no
// tensor has one place to write to, though nothing is copied.
TEST(BucketUse, HalvesAreNoViews) {
  Strategy strategy = plan::exchanging(Strategy::Exchange::kSharded);
  strategy.gather_groups = {{0, 1, 2}};
  const Used halves = used(strategy, cluster_of(2, 1));
  for (std::size_t b = 0; b < halves.uses.size(); ++b) {
    EXPECT_FALSE(halves.uses[b].staged);
    EXPECT_FALSE(halves.views[b]);
  }
}

// Gathered for the backward pass and again behind the update: only then are parameters new. What a
// step gathers of the step before has no place on a machine.
TEST(BucketUse, ParametersThatAreGatheredTwice) {
  Strategy strategy = plan::regathering();
  strategy.gather_groups = {{0, 1, 2}};
  const Used twice = used(strategy, cluster_of(2, 1));
  const BucketUse& gathered = twice.uses.back();
  EXPECT_EQ(gathered.first, gathered.last);
  strategy.gather_groups.clear();
  strategy.traits.fetches.live = 1;
  EXPECT_THROW(used(strategy, cluster_of(2, 1)), InputError);
}

}  // namespace
}  // namespace syncline::run
