// Groups whose messages all cross the same tier, on a cluster that also has a faster one: leaders
// of the nodes, shards across the nodes. The rule of core/collective/critical_path.h, that a
// message holds its sender for the fastest tier's latency, holds for them as for any other group.

#include <gtest/gtest.h>

#include "core/run/executor.h"
#include "sim/sim_executor.h"
#include "tests/support/plans.h"

namespace syncline::sim {
namespace {

struct Times {
  Seconds model;
  Seconds merged;
  Seconds step;
};

Times times_of(const Cluster& cluster, const plan::Plan& plan) {
  run::ExecutorSettings settings{cluster, {}, 1};
  Times times{};
  times.model = time_of(*run::make_model_executor(settings), plan);
  times.merged = time_of(*make_sim_executor(settings), plan);
  settings.simulation.grain = Simulation::Grain::kStep;
  times.step = time_of(*make_sim_executor(settings), plan);
  return times;
}

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
      }
    }
  }
}

// The tier inside the node carries nothing of it: as long as it is the faster one, how much faster
// is of no importance to a group of leaders that does not pipeline.
TEST(OneTierGroups, ANearlyEqualTierIsNoStepInTheCost) {
  for (const auto& algorithm : collective::algorithms()) {
    Cluster cluster = two_tier_cluster(4, 4);
    const plan::Plan plan = plan_of(16, {{1,
                                          {collective::CollectiveKind::kAllReduce, &algorithm,
                                           collective::world_group(16), 2000000, 4, 0}}});
    const Tier inter = cluster.tiers[1];
    cluster.tiers[0].latency = inter.latency;
    const Seconds equal = time_of(*run::make_model_executor({cluster, {}, 1}), plan);
    cluster.tiers[0].latency = inter.latency * (1 - 1e-9);
    const Seconds nearly = time_of(*run::make_model_executor({cluster, {}, 1}), plan);
    EXPECT_NEAR(nearly, equal, 1e-6 * equal) << algorithm.name;
  }
}

}  // namespace
}  // namespace syncline::sim
