// The thresholds found step by step against those found by trying every sum of consecutive sizes.
#include "studies/tune/thresholds.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/plan.h"
#include "core/plan/fusion.h"
#include "tests/support/fusion_rules.h"
#include "tests/support/small_plans.h"

namespace syncline::tune {
namespace {

std::vector<Tensor> random_tensors(std::mt19937& random, int count) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < count; ++i) {
    tensors.push_back(test::tensor_of("layer" + std::to_string(i / 3) + ".t" + std::to_string(i),
                                      {std::uniform_int_distribution<int>(1, 9)(random)}));
  }
  return tensors;
}

using Parts = std::vector<std::vector<int>>;

TEST(Thresholds, AreAllThatChangeThePartition) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const auto tensors = random_tensors(random, 1 + i % 14);
    const auto pointers = test::pointers_to(tensors);
    const auto candidates = test::indices_of(tensors);
    Fusion fusion = by_size(0, i % 2 == 0 ? Fusion::Close::kAfter : Fusion::Close::kBefore,
                            i % 5 == 0 ? 12 : 0);
    fusion.by_layer = i % 3 == 0;
    if (i % 7 == 0) fusion.count = 4;
    const auto found = size_thresholds(pointers, candidates, fusion);

    // Every whole number of bytes up to more than all of them.
    std::vector<Bytes> expected;
    Parts last;
    for (fusion.size = 0; fusion.size < 600; ++fusion.size) {
      Parts groups = plan::fuse(pointers, candidates, fusion);
      if (expected.empty() || last != groups) expected.push_back(fusion.size);
      last = std::move(groups);
    }
    ASSERT_EQ(found, expected) << i;
  }
}

TEST(Thresholds, CountsEndWithOneBucket) {
  std::mt19937 random(2);
  const auto tensors = random_tensors(random, 11);
  const auto pointers = test::pointers_to(tensors);
  const auto candidates = test::indices_of(tensors);
  const auto found = count_thresholds(pointers, candidates, Fusion{});
  EXPECT_EQ(found.front(), 1);
  EXPECT_EQ(found.back(), 11);
  std::set<Parts> distinct;
  Fusion fusion;
  fusion.rule = Fusion::Rule::kCount;
  for (const auto count : found) {
    fusion.count = count;
    distinct.insert(plan::fuse(pointers, candidates, fusion));
  }
  EXPECT_EQ(distinct.size(), found.size());
}

// Beyond kMaxExact gradients the list grows as the logarithm of their number, and no size is
// further than a percent from one that makes the same buckets as one on the list.
TEST(Thresholds, SizesAreAPercentApartForManyGradients) {
  std::mt19937 random(3);
  const auto tensors = random_tensors(random, 3000);
  const auto pointers = test::pointers_to(tensors);
  const auto candidates = test::indices_of(tensors);
  const auto found = size_thresholds(pointers, candidates, by_size(0, Fusion::Close::kAfter));
  EXPECT_LT(found.size(), 1000u);
  const auto buckets = [&](Bytes size) {
    return plan::fuse(pointers, candidates, by_size(size, Fusion::Close::kAfter)).size();
  };
  EXPECT_EQ(buckets(found.front()), 3000u);
  EXPECT_EQ(buckets(found.back()), 1u);
  for (std::size_t t = 1; t < found.size(); ++t) {
    ASSERT_GE(found[t], found[t - 1] + found[t - 1] / 100);
  }
  EXPECT_LT(count_thresholds(pointers, candidates, Fusion{}).size(), 600u);
}

// Groups without their lists of tensors are those of plan::fuse.
TEST(Thresholds, UnitsMakeTheGroupsOfTheRules) {
  std::mt19937 random(4);
  const auto draw = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  for (int i = 0; i < 2000; ++i) {
    const auto tensors = random_tensors(random, draw(40));
    const auto pointers = test::pointers_to(tensors);
    Fusion fusion = by_size(draw(200), i % 2 == 0 ? Fusion::Close::kAfter : Fusion::Close::kBefore,
                            i % 5 == 0 ? draw(60) : 0);
    if (i % 3 == 0) fusion.count = 1 + draw(6);
    if (i % 7 == 0) fusion.rule = Fusion::Rule::kCount;
    fusion.by_layer = i % 4 == 0;
    const FusionUnits units(pointers, test::indices_of(tensors), fusion);
    const auto groups = plan::fuse(pointers, test::indices_of(tensors), fusion);
    const GroupEnds ends = units.ends(fusion);
    ASSERT_EQ(ends.size(), groups.size()) << i;
    std::size_t begin = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      Bytes bytes = 0;
      for (const int tensor : groups[g])
        bytes += pointers[static_cast<std::size_t>(tensor)]->bytes();
      ASSERT_EQ(units.bytes(begin, ends[g]), bytes) << i;
      begin = ends[g];
    }
  }
}

// A pipeline's parts fuse by themselves: sizes that differ for the whole model are often alike.
TEST(Thresholds, EndsOfSeparateUnitsDecideThePlan) {
  std::mt19937 random(5);
  Workload workload;
  workload.forward = 0.01;
  workload.tensors = random_tensors(random, 12);
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    workload.tensors[t].part = t < 6 ? 1 : 0;
    workload.tensors[t].backward = 0.001;
  }
  workload.parallel.pipeline = 2;
  workload.micro_batches = 4;
  const SeparateUnits units(workload);
  const Cluster cluster = test::cluster_of(2, 4);
  std::map<GroupEnds, std::vector<std::vector<int>>> plans;
  for (Bytes size = 0; size < 600; ++size) {
    Strategy strategy;
    strategy.fusion = by_size(size, Fusion::Close::kAfter);
    std::vector<std::vector<int>> buckets;
    for (const auto& bucket : plan::make_plan(workload, cluster, strategy).buckets) {
      buckets.push_back(bucket.tensors);
    }
    const auto ends = units.ends(strategy);
    ASSERT_TRUE(ends);
    const auto [known, fresh] = plans.try_emplace(*ends, buckets);
    EXPECT_EQ(known->second, buckets) << size;
  }
  std::set<std::vector<std::vector<int>>> distinct;
  for (const auto& [ends, buckets] : plans) distinct.insert(buckets);
  EXPECT_EQ(distinct.size(), plans.size());
  EXPECT_GT(plans.size(), 3u);
  // More than the groups decides here.
  Strategy averaging;
  averaging.fusion = by_size(100, Fusion::Close::kAfter);
  averaging.local_sgd.enabled = true;
  EXPECT_FALSE(units.ends(averaging));
  Strategy ticked;
  ticked.fusion = by_size(100, Fusion::Close::kBefore);
  ticked.fusion.cycle = 0.001;
  EXPECT_FALSE(units.ends(ticked));
}

TEST(Thresholds, TheRoundestSizeOfARange) {
  EXPECT_EQ(roundest_size(41, 4000), 2048);
  EXPECT_EQ(roundest_size(0, 40), 0);
  EXPECT_EQ(roundest_size(41, 41), 41);
  EXPECT_EQ(roundest_size(25'500'000, 27'200'000), 25 * kMiB);
  for (Bytes low = 1; low < 70; ++low) {
    for (Bytes high = low; high < 140; ++high) {
      const Bytes found = roundest_size(low, high);
      ASSERT_TRUE(low <= found && found <= high);
      for (Bytes other = low; other <= high; ++other) {
        ASSERT_LE(other & -other, found & -found) << other << " of " << low << " to " << high;
      }
    }
  }
}

TEST(Thresholds, SizesThatPeopleWriteComeFirst) {
  EXPECT_TRUE(rounder_sizes(64 * kKiB).empty());
  EXPECT_TRUE(rounder_sizes(25 * kMiB).empty());
  EXPECT_TRUE(rounder_sizes(0).empty());
  const auto sizes = rounder_sizes(55'800);  // 54.5 KiB
  ASSERT_GT(sizes.size(), 3u);
  EXPECT_EQ(sizes[0], 50 * kKiB);
  EXPECT_EQ(sizes[1], 64 * kKiB);
  EXPECT_EQ(rounder_sizes(30 * kMiB).front(), 32 * kMiB);
  const auto whole = rounder_sizes(30'351'503);  // 28.95 MiB: the whole ones to either side, last
  EXPECT_EQ(whole.end()[-2], 29 * kMiB);
  EXPECT_EQ(whole.back(), 28 * kMiB);
}

TEST(Thresholds, TheSmallestOfEqualsIsTaken) {
  const Bytes best = test::best_threshold({1, 2, 3}, [](Bytes size) {
    return size == 1 ? 2.0 : size == 2 ? 1.0 : 1.0 - 1e-14;
  });
  EXPECT_EQ(best, 2);
}

TEST(Thresholds, RunEndsWantRuns) {
  EXPECT_EQ(test::run_ends({{0, 1}, {2}}), (std::vector<std::size_t>{1, 2}));
  EXPECT_TRUE(test::run_ends({{0, 2}, {1}}).empty());
}

}  // namespace
}  // namespace syncline::tune
