// The link that holds collectives up: which it is, how busy, and what cools it.
#include "studies/rows/fabric_jobs.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "tests/support/fabrics.h"
#include "tests/support/studies.h"
#include "tests/support/text.h"

namespace syncline::measure {
namespace {

// Eight nodes at two leaves whose trunks are narrowed, one gradient of 64 MiB.
Scenario scenario_on(const fabric::Topology& topology, fabric::Placement how) {
  return ring_job(on_fabric(flat_cluster(8), topology, fabric::place_nodes(topology, 8, how, 1)),
                  1e-3);
}

std::optional<HotLink> hot_link_in(const Scenario& scenario) {
  collective::CostCache cache(scenario.cluster);
  const Strategy& strategy = scenario.strategies.front();
  return find_hot_link(test::evaluated(scenario, strategy), scenario, strategy, cache);
}

TEST(HotLink, IsNamedWithWhatWouldCoolIt) {
  const auto hot = hot_link_in(scenario_on(leaves(8, 4, 8), fabric::Placement::kSpread));
  ASSERT_TRUE(hot);
  EXPECT_EQ(hot->sort, "spine");
  EXPECT_NE(hot->name.find("leaf"), std::string::npos);
  // 14 rounds of an eighth; every port carries one message each, a trunk of half a port four.
  const Seconds port = 14.0 / 8 * 4 * (1 << 24) / kNodePort;
  EXPECT_NEAR(hot->ports, port, 1e-6 * port);
  EXPECT_NEAR(hot->busy, 8 * port, 1e-6 * port);
  ASSERT_EQ(hot->cooler.size(), 2U);
  EXPECT_EQ(hot->cooler[0].first, "nodes side by side (placement: packed)");
  EXPECT_EQ(hot->cooler[1].first, "spine links twice as fast");
  EXPECT_LT(hot->cooler[0].second, hot->cooler[1].second);
}

TEST(HotLink, IsNoneIfPortsAreEquallyBusy) {
  // A ring packed on two leaves crosses each trunk once: half a port's trunk would be hot,
  EXPECT_TRUE(hot_link_in(scenario_on(leaves(8, 4, 8), fabric::Placement::kPacked)));
  // a whole port's is not, and a balanced fabric has none.
  EXPECT_FALSE(hot_link_in(scenario_on(leaves(8, 4, 4), fabric::Placement::kPacked)));
  EXPECT_FALSE(hot_link_in(scenario_on(leaves(8, 4, 1), fabric::Placement::kSpread)));
  Scenario tiers = scenario_on(leaves(8, 4, 1), fabric::Placement::kPacked);
  tiers.cluster.topology = nullptr;
  EXPECT_FALSE(hot_link_in(tiers));
}

// The hottest first; what its operations do to it is what the step does.
TEST(HotLink, EachOperationsWorkAddsUpToTheSteps) {
  const Scenario scenario = scenario_on(leaves(8, 4, 8), fabric::Placement::kSpread);
  collective::CostCache cache(scenario.cluster);
  const Evaluated evaluated = test::evaluated(scenario, scenario.strategies.front());
  const auto links = hottest_links(evaluated.plan, scenario.cluster, cache);
  const auto hot = hot_link_in(scenario);
  ASSERT_FALSE(links.empty());
  EXPECT_EQ(links[0].name, hot->name);
  ASSERT_EQ(links[0].of_op.size(), evaluated.plan.ops.size());
  const Seconds all = std::accumulate(links[0].of_op.begin(), links[0].of_op.end(), 0.0);
  EXPECT_NEAR(all, hot->busy, 1e-9 * all);
  Scenario tiers = scenario;
  tiers.cluster.topology = nullptr;
  EXPECT_TRUE(hottest_links(evaluated.plan, tiers.cluster, cache).empty());
}

std::vector<SwitchLoad> loads_in(const Scenario& scenario) {
  collective::CostCache cache(scenario.cluster);
  return switch_loads(test::evaluated(scenario, scenario.strategies.front()), scenario.cluster,
                      cache);
}

// A ring over nodes in turn crosses both trunks at every hop, in both directions alike.
TEST(SwitchLoads, AreThoseOfTheBusiestLinkAtEachSwitch) {
  const Scenario spread = scenario_on(leaves(8, 4, 8), fabric::Placement::kSpread);
  const auto loads = loads_in(spread);
  const Seconds busy = hot_link_in(spread)->busy;
  ASSERT_EQ(loads.size(), 3U);
  EXPECT_EQ(loads[0].name, "leaf0");
  EXPECT_EQ(loads[1].name, "leaf1");
  EXPECT_EQ(loads[2].name, "spine0..3");
  for (const SwitchLoad& load : loads) {
    EXPECT_EQ(load.sort, "spine");
    EXPECT_NEAR(load.out, busy, 1e-9 * busy);
    EXPECT_NEAR(load.in, busy, 1e-9 * busy);
  }
  EXPECT_TRUE(loads_in(scenario_on(leaves(8, 4, 1), fabric::Placement::kSpread)).empty());
}

// Of 128 switches three are one; the dimension whose links nobody takes is not there.
TEST(SwitchLoads, AreMergedForManySwitches) {
  const fabric::Topology ring = fabric::torus({128, 1}, kNodePort / 2);
  const Scenario scenario = ring_job(on_fabric(flat_cluster(128), ring), 1e-3);
  const auto loads = loads_in(scenario);
  ASSERT_EQ(loads.size(), 43U);
  EXPECT_EQ(loads[0].name, "node0.0 to node2.0");
  EXPECT_EQ(loads[42].name, "node126.0 to node127.0");
  for (const SwitchLoad& load : loads) {
    EXPECT_EQ(load.sort, "x");
    EXPECT_NEAR(load.out, loads[0].out, 1e-9 * loads[0].out);
    EXPECT_NEAR(load.in, loads[0].out, 1e-9 * loads[0].out);
  }
}

// Flows that meet by a hash part again where messages are spread.
TEST(HotLink, IsCooledByEvenRoutingAfterCollisions) {
  fabric::Topology topology = leaves(8, 4, 1);
  topology.hashed = true;
  const auto hot = hot_link_in(scenario_on(topology, fabric::Placement::kSpread));
  ASSERT_TRUE(hot);
  ASSERT_FALSE(hot->cooler.empty());
  EXPECT_TRUE(std::ranges::any_of(
      hot->cooler, [](const auto& one) { return test::contains(one.first, "even"); }));
}

}  // namespace
}  // namespace syncline::measure
