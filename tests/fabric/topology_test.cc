// Fabrics as graphs: what each kind joins, which way messages go, and what is left when links fail.
#include "core/fabric/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/fabric/kinds.h"

namespace syncline::fabric {
namespace {

std::vector<std::string> names_on_way(const Topology& topology, int from, int to, int part = 0) {
  Ways ways(topology);
  std::vector<int> links;
  ways.find(from, to, part, links);
  std::vector<std::string> names;
  for (const int id : links) {
    names.push_back(topology.name(topology.links[static_cast<std::size_t>(id)]));
  }
  return names;
}

using Names = std::vector<std::string>;

// 2 pods of 2 leaves of 4 hosts, with 2 spines a pod and 4 cores.
FatTree three_levels() { return {{4, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 10, 20}}; }

TEST(FatTree, HasTheSwitchesAndLinksOfItsFormula) {
  const Topology topology = fat_tree(three_levels());
  EXPECT_EQ(topology.all_nodes(), 16);
  // XGFT: prod m above times prod w up to the level: 4 x 1, 2 x 2, 1 x 4.
  EXPECT_EQ(topology.switches.size(), 4U + 4U + 4U);
  // A cable for each switch and parent, two directions: 4 x 2 and 4 x 2.
  EXPECT_EQ(topology.links.size(), 2U * (4 * 2 + 4 * 2));
}

TEST(FatTree, EvenSpreadingMakesOneTrunkOfEachPool) {
  const Topology topology = merge_pools(fat_tree(three_levels()));
  EXPECT_EQ(topology.switches.size(), 4U + 2U + 1U);
  EXPECT_EQ(topology.links.size(), 2U * (4 + 2));
  std::map<std::string, double> trunks;
  for (const FabricLink& link : topology.links) trunks[link.sort] = link.capacity;
  EXPECT_EQ(trunks.at("spine"), 2 * 10);
  EXPECT_EQ(trunks.at("core"), 4 * 20);
  EXPECT_EQ(names_on_way(topology, 0, 3), Names{});
  EXPECT_EQ(names_on_way(topology, 0, 4), (Names{"leaf0-spine0..1", "spine0..1-leaf1"}));
  EXPECT_EQ(names_on_way(topology, 0, 15), (Names{"leaf0-spine0..1", "spine0..1-core0..3",
                                                  "core0..3-spine2..3", "spine2..3-leaf3"}));
}

TEST(FatTree, EachWayGoesUpAndDownOnce) {
  Topology topology = fat_tree(three_levels());
  topology.hashed = true;
  for (int from = 0; from < 16; ++from) {
    for (int to = 0; to < 16; ++to) {
      if (from == to) continue;
      const std::size_t hops = from / 4 == to / 4 ? 0 : from / 8 == to / 8 ? 2 : 4;
      EXPECT_EQ(names_on_way(topology, from, to).size(), hops);
    }
  }
}

TEST(FatTree, AHashIsTheSameEachTimeAndReachesEveryWay) {
  Topology topology = fat_tree({{32, 2}, {1, 8}, {1, 1}, {0, 1}});
  topology.hashed = true;
  std::map<std::string, int> flows;
  for (int host = 0; host < 32; ++host) {
    const Names way = names_on_way(topology, host, 32 + host);
    EXPECT_EQ(way, names_on_way(topology, host, 32 + host));
    ++flows[way.front()];
  }
  EXPECT_EQ(flows.size(), 8U);
  // 32 balls in 8 bins: the fullest has more than the average of 4, with a chance of 1 - 1e-9.
  const auto fullest = std::max_element(flows.begin(), flows.end(),
                                        [](auto& a, auto& b) { return a.second < b.second; });
  EXPECT_GT(fullest->second, 4);
  topology.seed = 2;
  int moved = 0;
  for (int host = 0; host < 32; ++host) {
    Topology other = topology;
    other.seed = 1;
    moved += names_on_way(topology, host, 32 + host) != names_on_way(other, host, 32 + host);
  }
  EXPECT_GT(moved, 16);
}

// What cannot be full needs no simulation: counted by the job's hosts, not by the fabric's.
TEST(NeverFull, FollowsFromTheHostsBelow) {
  Topology topology = merge_pools(fat_tree({{4, 4}, {1, 2}, {1, 1}, {0, 1}}));  // 2:1
  EXPECT_EQ(never_full(topology, 1)[0], false);
  EXPECT_EQ(never_full(topology, 0.5)[0], true);
  topology.nodes = {0, 1, 4, 5};  // two of a leaf: half of its ports
  EXPECT_EQ(never_full(topology, 1)[0], true);
  topology.nodes = {0, 1, 2, 4};
  EXPECT_EQ(never_full(topology, 1)[0], false);
}

TEST(Rails, KeepToTheirLeavesAndPlanesApart) {
  LeafSpine shape{.nodes = 8,
                  .nodes_per_leaf = 4,
                  .spines = 2,
                  .cables = 1,
                  .speed = 1,
                  .rails = 2,
                  .tors = 2,
                  .planes = 2};
  const Topology topology = leaf_spine(shape);
  EXPECT_EQ(topology.lanes, 4);
  EXPECT_EQ(topology.switches.size(),
            2U * 4 + 2 * 2);  // leaves of two blocks; spines of two planes
  // Neighbours of a block meet at the leaf of the lane, whichever it is.
  for (int lane = 0; lane < 4; ++lane) {
    EXPECT_EQ(names_on_way(topology, lane, 4 + lane), Names{});
    EXPECT_EQ(names_on_way(topology, lane, 4 * 4 + lane).size(), 2U);
  }
  // From rail to rail by a spine; from plane to plane there is no way.
  EXPECT_EQ(names_on_way(topology, 0, 2).size(), 2U);
  EXPECT_THROW(names_on_way(topology, 0, 1), InputError);
}

TEST(Dragonfly, NoMessageTakesTwoGlobalLinks) {
  const Topology topology = dragonfly({5, 4, 2, 1, 1, 1});
  EXPECT_EQ(topology.all_nodes(), 40);
  EXPECT_EQ(topology.links.size(), 2U * (5 * 6 + 10));
  Ways ways(topology);
  for (int from = 0; from < 40; ++from) {
    for (int to = 0; to < 40; ++to) {
      std::vector<int> links;
      ways.find(from, to, 0, links);
      const auto global = std::count_if(links.begin(), links.end(), [&](int id) {
        return topology.links[static_cast<std::size_t>(id)].sort == "global";
      });
      EXPECT_EQ(global, from / 8 == to / 8 ? 0 : 1);
      EXPECT_LE(links.size(), 3U);
    }
  }
}

TEST(Dragonfly, NicsOfANodeMayHangAtSwitchesOfTheirOwn) {
  Dragonfly shape{2, 4, 3, 1, 1, 1};
  shape.apart = 2;
  const Topology topology = dragonfly(shape);
  EXPECT_EQ(topology.lanes, 2);
  EXPECT_EQ(topology.all_nodes(), 2 * 4 / 2 * 3);
  std::map<int, int> hosts;
  for (const int plug : topology.plugs) ++hosts[plug];
  for (int each = 0; each < 8; ++each) EXPECT_EQ(hosts[each], 3);
  // Nodes 0 to 2 are at switches 0 and 1, nodes 3 to 5 at 2 and 3.
  EXPECT_EQ(names_on_way(topology, 0, 2), Names{});
  EXPECT_EQ(names_on_way(topology, 0, 1), (Names{"group0.switch0-group0.switch1"}));
  EXPECT_EQ(names_on_way(topology, 1, 3 * 2 + 1), (Names{"group0.switch1-group0.switch3"}));
}

TEST(Torus, GoesDimensionByDimensionTheShorterWay) {
  const Topology topology = torus({4, 3}, 1);
  EXPECT_EQ(topology.links.size(), 2U * (12 + 12));
  EXPECT_EQ(names_on_way(topology, 0, 4 + 1), (Names{"node0.0-node1.0", "node1.0-node1.1"}));
  EXPECT_EQ(names_on_way(topology, 0, 3), (Names{"node0.0-node3.0"}));
  EXPECT_EQ(names_on_way(topology, 0, 8), (Names{"node0.0-node0.2"}));
  // Of two, one cable joins them; of one, none.
  EXPECT_EQ(torus({2, 1}, 1).links.size(), 2U);
}

TEST(Torus, HasTwoWaysToTheOppositePlace) {
  EXPECT_EQ(ways_at_a_tie(torus({4, 4}, 1)), 2);
  EXPECT_EQ(ways_at_a_tie(torus({3, 6}, 1)), 2);
  EXPECT_EQ(ways_at_a_tie(torus({3, 5}, 1)), 1);
  EXPECT_EQ(ways_at_a_tie(torus({2, 1, 3}, 1)), 1);
  EXPECT_EQ(ways_at_a_tie(merge_pools(fat_tree(three_levels()))), 1);
  // Half of a message goes by each, whoever sends it and whatever other dimensions it crosses.
  const Topology topology = torus({4, 4}, 1);
  for (const int from : {0, 1, 6, 15}) {
    const int x = from % 4;
    const int opposite = from - x + (x + 2) % 4;
    for (const int to : {opposite, (opposite + 4) % 16, (opposite + 8) % 16}) {
      EXPECT_NE(names_on_way(topology, from, to, 0).front(),
                names_on_way(topology, from, to, 1).front());
    }
  }
}

// Spread evenly, the narrowest of the links side by side gets as much as every other.
TEST(Pooled, CarriesAMultipleOfItsNarrowestLink) {
  Topology topology = fat_tree({{2, 2}, {1, 4}, {1, 1}, {0, 8}});
  const auto trunk = [&] {
    double least = 1e9;
    for (const FabricLink& link : merge_pools(topology).links)
      least = std::min(least, link.capacity);
    return least;
  };
  EXPECT_EQ(trunk(), 4 * 8);
  weaken(topology, "leaf0-spine1", 0.25);
  EXPECT_EQ(trunk(), 4 * 2);
  weaken(topology, "leaf0-spine1", 0);  // out of use: three are left
  EXPECT_EQ(trunk(), 3 * 8);
  weaken(topology, "spine", 0);
  EXPECT_EQ(trunk(), 0);
}

TEST(Weaken, TakesBothDirectionsAndWaysAroundWhatFailed) {
  Topology topology = fat_tree({{2, 2}, {1, 2}, {1, 1}, {0, 8}});
  EXPECT_EQ(weaken(topology, "leaf0-spine1", 0.5), 2);
  EXPECT_EQ(weaken(topology, "nothing", 0.5), 0);
  EXPECT_EQ(weaken(topology, "spine0", 0), 4);
  topology.hashed = true;
  for (int part = 0; part < 8; ++part) {
    EXPECT_EQ(names_on_way(topology, 0, 2, part), (Names{"leaf0-spine1", "spine1-leaf1"}));
  }
  EXPECT_EQ(weaken(topology, "spine", 0), 8);
  EXPECT_THROW(names_on_way(topology, 0, 2), InputError);
}

TEST(Placement, PacksDealsOutAndScatters) {
  const Topology topology = fat_tree({{3, 2}, {1, 1}, {1, 1}, {0, 1}});
  EXPECT_EQ(place_nodes(topology, 4, Placement::kPacked, 1), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(place_nodes(topology, 4, Placement::kSpread, 1), (std::vector<int>{0, 3, 1, 4}));
  const auto one = place_nodes(topology, 6, Placement::kScattered, 1);
  EXPECT_EQ(one, place_nodes(topology, 6, Placement::kScattered, 1));
  EXPECT_EQ(std::set<int>(one.begin(), one.end()).size(), 6U);
}

// Many names in one pass leave what each by itself leaves, to the last digit.
TEST(Fabric, ManyNamesWeakenLikeOneAfterTheOther) {
  const LeafSpine shape{256, 1, 64, 1, 1e9 / 3};
  Topology together = leaf_spine(shape), one_by_one = together;
  std::vector<std::pair<std::string, double>> shares;
  for (int i = 0; i < 100; ++i) {
    shares.emplace_back("leaf" + std::to_string(i % 7) + "-spine" + std::to_string(i % 3), 0.9);
    shares.emplace_back(i % 2 == 0 ? "spine" : "spine" + std::to_string(i % 5), 0.7);
  }
  shares.emplace_back("nothing", 0.5);
  std::vector<int> counts;
  for (const auto& [name, share] : shares) counts.push_back(weaken(one_by_one, name, share));
  EXPECT_EQ(weaken(together, shares), counts);
  EXPECT_EQ(counts.back(), 0);
  for (std::size_t i = 0; i < together.links.size(); ++i) {
    EXPECT_EQ(together.links[i].capacity, one_by_one.links[i].capacity) << i;
  }
}

}  // namespace
}  // namespace syncline::fabric
