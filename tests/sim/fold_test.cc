// What is folded before it is simulated takes as long as what is not.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/sim/flows.h"
#include "core/sim/fold.h"
#include "core/sim/pace.h"
#include "tests/support/fabrics.h"
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

// A ring over nodes that are scattered over leaves with narrow uplinks: no two ranks are alike, and
// after some rounds each is like the one before. With chunks of two sizes, rounds never repeat, and
// rounding decides which of two messages is first.
TEST(Fold, RoundsThatRepeatAreSkipped) {
  const fabric::Topology topology = leaves(64, 8, 4);
  for (const unsigned seed : {1U, 2U, 3U}) {
    const Cluster cluster =
        on_fabric(flat_cluster(64), topology,
                  fabric::place_nodes(topology, 64, fabric::Placement::kScattered, seed));
    for (const std::int64_t elements : {64 * 1000, 64 * 1000 + 7}) {
      const plan::Plan plan = plan_of(64, {{1, all_reduce(64, "ring", elements)},
                                           {1, all_reduce(64, "ring", 64 * 300)},
                                           {1, all_reduce(64, "ring", elements)}});
      const Seconds each = simulated(cluster, plan, Granularity::kStep, false);
      const double within = elements % 64 == 0 ? 1e-6 : 0.02;
      EXPECT_NEAR(simulated(cluster, plan, Granularity::kStep), each, within * each)
          << "seed " << seed << ", " << elements << " elements";
    }
  }
}

// Notes rounds of 2 s, and in each the arrival of a message after `arrivals[round][rank]`; returns
// the round in which the pace is found.
int round_with_pace(Pace& pace, const std::vector<std::vector<Seconds>>& arrivals) {
  pace.begin({1, 1}, 0, 100);
  for (std::size_t round = 0; round < arrivals.size(); ++round) {
    const Seconds begin = 100 + 2 * static_cast<double>(round);
    for (const int rank : {0, 1}) {
      const Seconds at = begin + arrivals[round][index(rank)];
      for (const auto event : {Pace::kSetOut, Pace::kOffWire, Pace::kArrival}) {
        if (pace.note(event, rank, at)) return static_cast<int>(round);
      }
    }
    for (const int rank : {0, 1}) pace.note(Pace::kRound, rank, begin + 2);
  }
  return -1;
}

// Rank 1 gets its message later than before in one round.
TEST(Fold, APaceIsFoundOnceAllEventsRepeat) {
  Pace pace;
  const std::vector<Seconds> early{0.5, 0.5};
  const std::vector<Seconds> late{0.5, 1.5};
  EXPECT_EQ(round_with_pace(pace, std::vector(8, early)), 4);
  EXPECT_DOUBLE_EQ(pace.round(), 2);
  EXPECT_EQ(round_with_pace(pace, {early, early, early, late, late, late, late, late}), 7);
  EXPECT_EQ(round_with_pace(pace, {early, late, early, late, early, late, early, late}), -1);
  EXPECT_TRUE(pace.looks());
}

// Messages that are under way for longer than a round arrive late one after the other: a wave runs
// around the ring, and no round is like the one before, though most ranks' rounds are.
TEST(Fold, WavesAroundARingDoNotRepeatByTheRound) {
  for (const std::int64_t elements : {200, 4096, 40000}) {
    Cluster cluster = two_tier_cluster(4, 8);
    cluster.tiers[0].latency = 1e-6;
    cluster.tiers[1].latency = 14e-6;
    const plan::Plan plan = all_reduce_plan(32, "ring", 32 * elements);
    const Seconds each = simulated(cluster, plan, Granularity::kStep, false);
    EXPECT_NEAR(simulated(cluster, plan, Granularity::kStep), each, 1e-6 * each) << elements;
  }
}

// Flows that share no link with others take their bytes over the slowest link, next to those that
// do.
TEST(Fold, ALinkOfOneMessageAtATimeIsNotShared) {
  for (const std::int64_t elements : {std::int64_t{7'000'003}, std::int64_t{41}}) {
    Cluster cluster = two_tier_cluster(6, 3);
    cluster.tiers[1].oversubscription = 1.5;
    for (const char* algorithm : {"ring", "double_binary_tree", "halving_doubling", "to_one"}) {
      const plan::Plan plan = all_reduce_plan(18, algorithm, elements);
      const Seconds each = simulated(cluster, plan, Granularity::kStep, false);
      EXPECT_NEAR(simulated(cluster, plan, Granularity::kStep), each, 1e-9 * each) << algorithm;
    }
  }
}

}  // namespace
}  // namespace syncline::sim
