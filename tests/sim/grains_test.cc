// The closed form, the merged simulation and the simulation message by message, held against each
// other where they once parted, and on random scenarios.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "core/measure/study.h"
#include "core/run/model_executor.h"
#include "sim/sim_executor.h"
#include "tests/support/plans.h"
#include "tests/support/random_scenario.h"

namespace syncline::sim {
namespace {

enum class Way { kModel, kMerged, kUnfolded, kStep };

run::Outcome outcome_of(const Cluster& cluster, const plan::Plan& plan, Way way) {
  run::ExecutorSettings settings{cluster, {}, 1};
  if (way == Way::kModel) return run::make_model_executor(settings)->run(plan, {}, 1);
  settings.simulation.grain =
      way == Way::kStep ? Simulation::Grain::kStep : Simulation::Grain::kMerged;
  settings.simulation.fold = way == Way::kMerged;
  return make_sim_executor(settings)->run(plan, {}, 1);
}

Seconds time_in(const Cluster& cluster, const plan::Plan& plan, Way way) {
  return outcome_of(cluster, plan, way).timeline.period_ends.back();
}

Cluster cluster_of_tiers(int nodes, int gpus, Tier intra, Tier inter) {
  Cluster cluster = two_tier_cluster(nodes, gpus);
  intra.span = gpus;
  inter.span = nodes * gpus;
  cluster.tiers = {intra, inter};
  return cluster;
}

Tier links(double latency_us, double gbps) {
  Tier tier;
  tier.latency = latency_us * kMicrosecond;
  tier.bandwidth = gbps * kGigabitPerSecond;
  return tier;
}

plan::Plan all_reduce_on(int ranks, const std::string& algorithm, std::int64_t elements) {
  return plan_of(ranks, {{1, collective_of(collective::CollectiveKind::kAllReduce, algorithm,
                                           collective::world_group(ranks), elements)}});
}

// Dozens of messages into one port, step by step: SimGrid once lost its way over what rounding left
// of the link, and its process crashed.
TEST(Grains, ManyMessagesIntoOnePort) {
  for (const int nodes : {2, 3, 8, 12, 25}) {
    for (const int gpus : {2, 3, 4, 8}) {
      const Cluster cluster = cluster_of_tiers(nodes, gpus, links(5, 1000), links(20, 1));
      const plan::Plan plan = all_reduce_on(nodes * gpus, "to_one", 467720);
      const Seconds model = time_in(cluster, plan, Way::kModel);
      EXPECT_NEAR(time_in(cluster, plan, Way::kStep) / model, 1, 1e-6) << nodes << " x " << gpus;
    }
  }
}

// Flows that stand for 7 and for 32 messages share the port that all of them go to: in proportion.
TEST(Grains, FoldedFlowsShareALinkInProportion) {
  for (const int gpus : {2, 3, 8}) {
    const Cluster cluster = cluster_of_tiers(5, gpus, links(1, 40), links(20, 25));
    const plan::Plan plan = all_reduce_on(5 * gpus, "to_one", 5000000);
    const Seconds unfolded = time_in(cluster, plan, Way::kUnfolded);
    EXPECT_NEAR(time_in(cluster, plan, Way::kMerged) / unfolded, 1, 1e-6) << gpus;
    EXPECT_NEAR(time_in(cluster, plan, Way::kModel) / unfolded, 1, 1e-6) << gpus;
  }
}

}  // namespace
}  // namespace syncline::sim
