// What is folded before it is simulated takes as long as what is not.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/sim/flows.h"
#include "core/sim/fold.h"
#include "tests/support/random_collectives.h"
#include "tests/support/simulated.h"

namespace syncline::sim {
namespace {

// SimGrid shares links to within 1e-9 and counts 1/1024 bytes: a message of a few bytes in a round
// of microseconds is off by more than that.
constexpr double kSimGrid = 2e-7;

// Three collectives of 62 routes, 256 flows along each, took SimGrid minutes a step.
TEST(Fold, StagesAtOnceAreFewFlowsAndAllBytes) {
  for (const int routes : {1, 4, 62, 1000}) {
    FlowPlan plan(2);
    double sent = 0;
    for (int route = 0; route < routes; ++route) {
      plan[0].push_back({route, 1.0});
      plan[1].push_back({route, route == 0 ? 1e-3 : 0.5});  // a small one sets the size of all
      sent += plan[0].back().fraction + plan[1].back().fraction;
    }
    const FlowPlan whole = at_once(plan);
    ASSERT_EQ(whole.size(), 1u);
    EXPECT_LE(whole.front().size(), std::max<std::size_t>(1024, 8 * plan[0].size())) << routes;
    double left = sent;
    for (const Flow& flow : whole.front()) left -= flow.fraction;
    EXPECT_NEAR(left / sent, 0, 1e-9) << routes;
  }
}

// Up to three, on one stream or on one each; some of them in parts of one size, which leave more
// ranks alike.
plan::Plan random_plan(test::RandomCollectives& random, const Cluster& cluster, bool one_stream,
                       bool some_even) {
  std::vector<std::pair<plan::StreamId, collective::Collective>> collectives;
  for (int c = random.number(1, 3); c > 0; --c) {
    auto& [stream, each] = collectives.emplace_back(one_stream ? 1 : c, random.collective(cluster));
    if (some_even && random.number(0, 1) == 1) each.elements *= cluster.ranks();
  }
  return plan_of(cluster.ranks(), collectives);
}

// Of so many cases, within a share of the time.
void expect_folded_alike(unsigned seed, int cases, Granularity granularity, double within) {
  const bool step_by_step = granularity == Granularity::kStep;
  test::RandomCollectives random(seed);
  for (int i = 0; i < cases; ++i) {
    const Cluster cluster = random.cluster(6, 4);
    const plan::Plan plan = random_plan(random, cluster, !step_by_step || i % 2 == 0, step_by_step);
    if (!step_by_step) {
      ASSERT_FALSE(plan::overlaps(plan));
    }
    const Seconds each = simulated(cluster, plan, granularity, false);
    EXPECT_NEAR(simulated(cluster, plan, granularity), each, within * each)
        << std::get<collective::Collective>(plan.ops.front().work).algorithm->name << " and "
        << plan.ops.size() - 1 << " more on " << cluster.nodes << " x " << cluster.gpus_per_node;
  }
}

TEST(Fold, CollectivesOneAfterTheOtherTakeAsLong) {
  expect_folded_alike(3, 60, Granularity::kMerged, kSimGrid);
}

// Rings and halvings that overlap fold by links of one kind each (fold.h).
TEST(Fold, RingsThatOverlapTakeAsLong) {
  for (const char* algorithm : {"ring", "halving_doubling"}) {
    const Cluster cluster = two_tier_cluster(4, 4);
    const plan::Plan plan = plan_of(
        16, {{1, all_reduce(16, algorithm, 4'000'000)}, {2, all_reduce(16, algorithm, 1'500'000)}});
    ASSERT_TRUE(plan::overlaps(plan));
    const Seconds each = simulated(cluster, plan, Granularity::kMerged, false);
    EXPECT_NEAR(simulated(cluster, plan, Granularity::kMerged), each, 1e-5 * each) << algorithm;
  }
}

// Four routes into one port, and one beside them: of those alike one is left, which claims the port
// four times.
TEST(Fold, OneRouteClaimsALinkForAllOfItsKind) {
  const std::vector<Route> routes{{0, 4}, {1, 4}, {2, 4}, {3, 4}, {5}};
  const Folding folding = folding_of(routes, Colours(5, 1), Colours(6, 1));
  EXPECT_EQ(folding.routes.of, (std::vector<int>{0, 0, 0, 0, 1}));
  EXPECT_EQ(folding.links.members, (std::vector<std::size_t>{4, 1, 1}));
  EXPECT_EQ(folded_routes(routes, folding), (std::vector<Route>{{0, 1, 1, 1, 1}, {2}}));
}

// Every message of ranks that are alike, once or each.
TEST(Fold, StepByStepTakesAsLong) { expect_folded_alike(5, 200, Granularity::kStep, 1e-9); }

// Alone on the network, a collective takes as long each time: the first time tells.
TEST(Fold, ACollectiveThatIsRepeatedTakesAsLong) {
  const Cluster cluster = two_tier_cluster(3, 2);
  const auto tree = all_reduce(6, "double_binary_tree", 1'000'001);
  const Seconds once = simulated(cluster, plan_of(6, {{1, tree}}), Granularity::kStep);
  const plan::Plan thrice = plan_of(6, {{1, tree}, {1, tree}, {1, tree}});
  EXPECT_NEAR(simulated(cluster, thrice, Granularity::kStep), 3 * once, 1e-9 * once);
}

}  // namespace
}  // namespace syncline::sim
