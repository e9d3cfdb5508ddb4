// The dynamic programme against everything that could be better: every contiguous fusion, every
// grouping at all in every order, and its own O(L) form against its O(L^2) form.
#include "studies/tune/configuration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "tests/support/fusion_rules.h"

namespace syncline::test {
namespace {

// Small whole numbers: sums of them are exact, so equal means equal.
struct Instance {
  FusionProblem problem;
  AffineCost affine;
  tune::RunCost regimes;  // three protocols, each affine, never falling with the bytes
};

Instance random_instance(std::mt19937& random, std::size_t count) {
  const auto draw = [&](int least, int most) {
    return static_cast<double>(std::uniform_int_distribution<int>(least, most)(random));
  };
  Instance instance;
  const double wait = draw(0, 12);
  double ready = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ready += draw(0, static_cast<int>(wait));
    instance.problem.ready.push_back(ready);
    instance.problem.bytes.push_back(draw(0, 20));
  }
  instance.affine = {draw(0, 30), draw(0, 3)};
  const double first = draw(1, 20), second = first + draw(0, 40);
  const double low = draw(0, 10), rate = draw(1, 4), jump = draw(0, 15);
  const auto of_bytes = [=](double bytes) {
    if (bytes <= first) return low + rate * bytes;
    const double at_first = low + rate * first + jump;
    if (bytes <= second) return at_first + (bytes - first);
    return at_first + (second - first) + jump + 2 * (bytes - second);
  };
  const auto bytes = instance.problem.bytes;
  instance.regimes = [=](std::size_t begin, std::size_t end) {
    return of_bytes(std::accumulate(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                    bytes.begin() + static_cast<std::ptrdiff_t>(end), 0.0));
  };
  return instance;
}

// Every way to cut the gradients into runs.
Seconds best_of_all_cuts(const std::vector<Seconds>& ready, const tune::RunCost& cost) {
  const std::size_t count = ready.size();
  Seconds best = std::numeric_limits<double>::infinity();
  for (std::size_t cuts = 0; cuts < (std::size_t{1} << (count - 1)); ++cuts) {
    Seconds now = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (i + 1 < count && (cuts >> i & 1) == 0) continue;
      now = std::max(now, ready[i]) + cost(first, i + 1);
      first = i + 1;
    }
    best = std::min(best, now);
  }
  return best;
}

TEST(Optimum, EqualsExhaustiveSearchWithAffineCosts) {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    const auto instance = random_instance(random, 1 + static_cast<std::size_t>(i) % 12);
    const tune::RunCost cost = run_cost(instance.problem, instance.affine);
    const Seconds best = best_of_all_cuts(instance.problem.ready, cost);
    const tune::FusionPlan slow = tune::best_fusion(instance.problem.ready, cost);
    const tune::FusionPlan fast = best_fusion(instance.problem, instance.affine);
    ASSERT_EQ(slow.finish, best) << i;
    ASSERT_EQ(fast.finish, best) << i;
    ASSERT_EQ(finish_of(instance.problem.ready, slow.ends, cost), best) << i;
    ASSERT_EQ(finish_of(instance.problem.ready, fast.ends, cost), best) << i;
    ASSERT_LE(fusion_lower_bound(instance.problem, instance.affine), best) << i;
  }
}

TEST(Optimum, EqualsExhaustiveSearchWithRegimesOfCost) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const auto instance = random_instance(random, 1 + static_cast<std::size_t>(i) % 12);
    const tune::FusionPlan plan = tune::best_fusion(instance.problem.ready, instance.regimes);
    ASSERT_EQ(plan.finish, best_of_all_cuts(instance.problem.ready, instance.regimes)) << i;
    ASSERT_EQ(finish_of(instance.problem.ready, plan.ends, instance.regimes), plan.finish) << i;
  }
}

// A copy into the bucket, needed only where several gradients share one: the cost depends on more
// than the bytes, and the programme is still exact.
TEST(Optimum, EqualsExhaustiveSearchWithCopiesIntoBuckets) {
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    const auto instance = random_instance(random, 1 + static_cast<std::size_t>(i) % 10);
    const tune::RunCost plain = run_cost(instance.problem, instance.affine);
    const tune::RunCost bytes = run_cost(instance.problem, {0, 2});
    const tune::RunCost cost = [&](std::size_t begin, std::size_t end) {
      return plain(begin, end) + (end - begin > 1 ? 5 + bytes(begin, end) : 0);
    };
    const tune::FusionPlan plan = tune::best_fusion(instance.problem.ready, cost);
    ASSERT_EQ(plan.finish, best_of_all_cuts(instance.problem.ready, cost)) << i;
  }
}

TEST(Optimum, TheLinearFormEqualsTheQuadraticOne) {
  std::mt19937 random(4);
  for (const std::size_t count : std::initializer_list<std::size_t>{1, 2, 3, 17, 161, 580, 2000}) {
    for (int i = 0; i < (count > 1000 ? 3 : 20); ++i) {
      const auto instance = random_instance(random, count);
      const tune::RunCost cost = run_cost(instance.problem, instance.affine);
      const tune::FusionPlan fast = best_fusion(instance.problem, instance.affine);
      ASSERT_EQ(fast.finish, tune::best_fusion(instance.problem.ready, cost).finish) << count;
      ASSERT_EQ(finish_of(instance.problem.ready, fast.ends, cost), fast.finish) << count;
    }
  }
}

// Every set partition of the gradients with every order of its groups.
void for_each_ordered_partition(
    std::size_t count, const std::function<void(const std::vector<std::vector<int>>&)>& visit) {
  std::vector<std::vector<int>> groups;
  std::function<void(int)> place = [&](int index) {
    if (index == static_cast<int>(count)) {
      auto ordered = groups;
      std::sort(ordered.begin(), ordered.end());
      do {
        visit(ordered);
      } while (std::next_permutation(ordered.begin(), ordered.end()));
      return;
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      groups[g].push_back(index);
      place(index + 1);
      groups[g].pop_back();
    }
    groups.push_back({index});
    place(index + 1);
    groups.pop_back();
  };
  place(0);
}

TEST(Optimum, NoGroupingInAnyOrderIsBetter) {
  std::mt19937 random(5);
  int visited = 0;
  for (int i = 0; i < 120; ++i) {
    const std::size_t count = 1 + static_cast<std::size_t>(i) % 6;
    const auto instance = random_instance(random, count);
    const auto& ready = instance.problem.ready;
    const auto& bytes = instance.problem.bytes;
    Seconds best = std::numeric_limits<double>::infinity();
    for_each_ordered_partition(count, [&](const std::vector<std::vector<int>>& groups) {
      Seconds now = 0;
      for (const auto& group : groups) {
        Seconds release = 0;
        double sum = 0;
        for (const int index : group) {
          release = std::max(release, ready[static_cast<std::size_t>(index)]);
          sum += bytes[static_cast<std::size_t>(index)];
        }
        now = std::max(now, release) + instance.affine.latency +
              instance.affine.seconds_per_byte * sum;
      }
      best = std::min(best, now);
      ++visited;
    });
    ASSERT_EQ(best_fusion(instance.problem, instance.affine).finish, best) << i;
  }
  EXPECT_GT(visited, 20 * 4683);  // 4683 ordered partitions of six
}

TEST(Optimum, WithoutLatencyNoFusionIsBest) {
  std::mt19937 random(6);
  auto instance = random_instance(random, 40);
  instance.affine.latency = 0;
  std::vector<std::size_t> alone(40);
  std::iota(alone.begin(), alone.end(), std::size_t{0});
  const tune::RunCost cost = run_cost(instance.problem, instance.affine);
  EXPECT_EQ(best_fusion(instance.problem, instance.affine).finish,
            finish_of(instance.problem.ready, alone, cost));
  EXPECT_EQ(best_fusion(instance.problem, instance.affine).finish,
            fusion_lower_bound(instance.problem, instance.affine));
}

// The family on which waiting adds up: gradients every 0.9 latencies, 0.8 latencies of transfer
// (8 bytes at a tenth of a latency each).
// The ratio of MG-WFBP to the optimum tends to 17 / 9.
TEST(Optimum, MgWfbpIsFarFromItIfWaitsAddUp) {
  const auto ratio = [](std::size_t count) {
    FusionProblem problem;
    for (std::size_t i = 1; i <= count; ++i) {
      problem.ready.push_back(0.9 * static_cast<double>(i));
      problem.bytes.push_back(8);
    }
    const AffineCost cost{1, 0.1};
    return finish_of(problem.ready, mg_wfbp(problem, cost), run_cost(problem, cost)) /
           best_fusion(problem, cost).finish;
  };
  EXPECT_NEAR(ratio(10), 1.36, 0.005);
  EXPECT_NEAR(ratio(50), 1.65, 0.005);
  EXPECT_NEAR(ratio(200), 1.80, 0.005);
}

TEST(Optimum, NoGradientsTakeNoTime) {
  EXPECT_EQ(best_fusion(FusionProblem{}, AffineCost{1, 1}).finish, 0);
  EXPECT_TRUE(best_fusion(FusionProblem{}, AffineCost{1, 1}).ends.empty());
}

// Without latency every grouping takes as long as the next: one bucket is the simplest.
TEST(BestFusion, TheLongestBucketOfEqualChoicesIsTaken) {
  const auto affine = [](std::size_t first, std::size_t end) {
    return static_cast<double>(end - first);
  };
  EXPECT_EQ(tune::best_fusion({0, 0, 0, 0}, affine).ends, (std::vector<std::size_t>{3}));
  EXPECT_EQ(tune::best_fusion({0, 0, 9, 9}, affine).ends.size(), 2U);
}

}  // namespace
}  // namespace syncline::test
