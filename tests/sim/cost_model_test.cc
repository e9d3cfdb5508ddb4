// Where a cost model says what a collective takes, the merged simulation and the model say the
// same.
#include <gtest/gtest.h>

#include "core/collective/nccl.h"
#include "core/cost.h"
#include "tests/support/simulated.h"

namespace syncline::sim {
namespace {

collective::Collective by_nccl(const Cluster& cluster, collective::CollectiveKind kind,
                               Bytes bytes) {
  collective::Collective collective{
      kind, nullptr, collective::world_group(cluster.ranks()), bytes / 4, 4, 0, {}};
  collective::choose_algorithm(collective, collective::kNcclName, cluster);
  return collective;
}

TEST(CostModelInTime, ModelAndSimulationTakeTheCostModelsTimeOnAnIdleNetwork) {
  for (const Cluster& cluster : {flat_cluster(2), flat_cluster(5), two_tier_cluster(2, 4)}) {
    for (const auto kind :
         {collective::CollectiveKind::kAllReduce, collective::CollectiveKind::kAllGather}) {
      for (const Bytes bytes : {kKiB, 256 * kKiB, 256 * kMiB}) {
        const collective::Collective c = by_nccl(cluster, kind, bytes);
        const plan::Plan plan = plan_of(cluster.ranks(), {{1, c}});
        const Seconds cost_model = collective::NcclCostModel(cluster).time(c)->time;
        EXPECT_NEAR(modelled(cluster, plan) / cost_model, 1, 1e-9);
        EXPECT_NEAR(simulated(cluster, plan, Granularity::kMerged, false) / cost_model, 1, 2e-4)
            << bytes;
        EXPECT_NEAR(simulated(cluster, plan, Granularity::kMerged) / cost_model, 1, 2e-4) << bytes;
      }
    }
  }
}

// A cost model that outruns the links as given scales the flows down, folded or not.
TEST(CostModelInTime, FasterThanTheLinks) {
  for (auto [cluster, elements] :
       {std::pair{flat_cluster(4), 64 * kMiB / 4}, {two_tier_cluster(4, 4), 4'000'000}}) {
    cluster.cost_model = [](const collective::Collective&) { return CollectiveTime{.time = 1e-3}; };
    const plan::Plan plan = all_reduce_plan(cluster.ranks(), "ring", elements);
    EXPECT_NEAR(modelled(cluster, plan), 1e-3, 1e-9);
    EXPECT_NEAR(simulated(cluster, plan, Granularity::kMerged), 1e-3, 1e-9);
    EXPECT_NEAR(simulated(cluster, plan, Granularity::kMerged, false), 1e-3, 1e-9);
  }
}

// Two at once share the links: what the cost model leaves above the transfer overlaps, the transfer
// does not.
TEST(CostModelInTime, TwoStreamsShareTheLinks) {
  Cluster cluster = flat_cluster(4);
  collective::CostCache cache(cluster);
  const collective::Collective ring = all_reduce(4, "ring", 64 * kMiB / 4);
  const Seconds transfer = cache.cost(ring).seconds_per_byte * static_cast<double>(ring.bytes());
  for (const double factor : {0.5, 1.0, 1.5, 3.0}) {
    cluster.cost_model = [=](const collective::Collective&) {
      return CollectiveTime{.time = factor * transfer};
    };
    const plan::Plan plan = plan_of(4, {{1, ring}, {2, ring}});
    const Seconds wanted = factor <= 1 ? 2 * factor * transfer : (factor + 1) * transfer;
    EXPECT_NEAR(modelled(cluster, plan) / wanted, 1, 1e-6) << factor;
    EXPECT_NEAR(simulated(cluster, plan, Granularity::kMerged) / wanted, 1, 1e-3) << factor;
  }
}

}  // namespace
}  // namespace syncline::sim
