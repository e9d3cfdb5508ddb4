// "fabric" as an object: what its keys stand for, what is refused, and that it is written back.
#include <gtest/gtest.h>

#include <set>

#include "core/fabric/kinds.h"
#include "core/fabric/topology.h"
#include "formats/input/read_cluster.h"
#include "formats/input/read_strategy.h"
#include "formats/input/scenario_json.h"
#include "formats/json/reader.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::input {
namespace {

using test::contains;
using test::input_error;

// 8 NICs of 400 Gbit/s a node.
Json nodes_with(int nodes, const Json& fabric) {
  return {{"node", "dgx-h100"}, {"nodes", nodes}, {"fabric", fabric}};
}

Cluster read_with(int nodes, const Json& fabric) {
  const Json json = nodes_with(nodes, fabric);
  return read_cluster(Reader(json, "c.json", "cluster"));
}

std::string refused_with(int nodes, const Json& fabric) {
  return input_error([&] { read_with(nodes, fabric); });
}

using Refused = std::vector<std::pair<Json, const char*>>;

void expect_refused(int nodes, const Refused& refused) {
  for (const auto& [fabric, words] : refused) {
    const std::string said = refused_with(nodes, fabric);
    EXPECT_TRUE(contains(said, words)) << fabric << ": " << said;
  }
}

double total_up(const fabric::Topology& topology, int from) {
  double all = 0;
  for (const auto& link : topology.links) all += link.from == from ? link.capacity : 0;
  return all;
}

constexpr double kNic = 400 * kGigabitPerSecond;

TEST(Fabric, AWordKeepsItsMeaningAndAnObjectHasTheNodesOwn) {
  EXPECT_EQ(read_with(4, "efa").fabric, Fabric::kEfa);
  EXPECT_EQ(read_with(4, "efa").topology, nullptr);
  const Cluster cluster = read_with(4, {{"name", "spectrum-x"}});
  EXPECT_EQ(cluster.fabric, Fabric::kRdma);
  ASSERT_NE(cluster.topology, nullptr);
  EXPECT_EQ(read_with(4, {{"name", "spectrum-x"}, {"transport", "tcp"}}).fabric, Fabric::kTcp);
}

TEST(Fabric, OversubscriptionIsExact) {
  for (const double k : {1.0, 2.0, 3.0, 8.0}) {
    const Json keys{{"kind", "leaf_spine"}, {"nodes_per_leaf", 4}, {"oversubscription", k}};
    const auto topology = *read_with(8, keys).topology;
    EXPECT_NEAR(total_up(topology, 0), 4 * 8 * kNic / k, 1e-6 * kNic) << k;
  }
}

// SimAI's DCN+: 64 NICs of 400 Gbit/s below a leaf, 8 cables of 400 above.
TEST(Fabric, NamesHaveTheirSourcesFigures) {
  EXPECT_NEAR(total_up(*read_with(16, {{"name", "dcn+"}}).topology, 0), 8 * kNic, 1);
  const auto pod = *read_with(64, {{"name", "superpod-h100"}}).topology;
  EXPECT_EQ(pod.lanes, 8);
  const Cluster cluster = read_with(4, {{"name", "llama3-24k"}});
  EXPECT_TRUE(contains(cluster.source, "Llama 3"));
  const Json written = cluster_json(cluster, 6);
  EXPECT_EQ(read_cluster(Reader(written, "c.json", "cluster")).source, cluster.source);
  EXPECT_NEAR(total_up(pod, 0), 32 * kNic, 1);  // of 32 NICs: nothing oversubscribed
  const auto planes = *read_with(256, {{"name", "alibaba-hpn-dual-plane"}}).topology;
  EXPECT_EQ(planes.lanes, 16);
  std::set<std::string> names;
  for (const auto& known : fabric::known_fabrics()) {
    const Json keys = Json::parse(known.keys);
    const int nodes = keys["kind"] == "torus" ? 64 : 32;
    EXPECT_EQ(refused_with(nodes, {{"name", known.name}}), "") << known.name;
    names.insert(std::string(known.name));
  }
  EXPECT_EQ(names.size(), fabric::known_fabrics().size());
}

TEST(Fabric, KeysNextToANameReplaceItsOwn) {
  const auto topology =
      *read_with(64, {{"name", "superpod-h100"}, {"nodes_per_leaf", 16}}).topology;
  EXPECT_NEAR(total_up(topology, 0), 32 * kNic, 1);
  EXPECT_EQ(topology.all_nodes(), 64);
  EXPECT_EQ(topology.plugs[16 * 8], 8);  // node 16 at the second block's leaves
}

TEST(Fabric, OversubscriptionReplacesANamesSpines) {
  const auto topology = *read_with(64, {{"name", "spectrum-x"}, {"oversubscription", 4}}).topology;
  EXPECT_NEAR(total_up(topology, 0), 64 * kNic / 4, 1e-6 * kNic);
}

TEST(Fabric, LoadAndDegradedLinksAreTakenOff) {
  Json keys{{"kind", "leaf_spine"}, {"nodes_per_leaf", 4}, {"spines", 4}};
  const double whole = total_up(*read_with(8, keys).topology, 0);
  keys["load"] = {{"spine", 0.3}};
  EXPECT_NEAR(total_up(*read_with(8, keys).topology, 0), 0.7 * whole, 1);
  keys["degraded"] = Json::array({{{"link", "leaf0-spine3"}, {"share", 0}}});
  EXPECT_NEAR(total_up(*read_with(8, keys).topology, 0), 0.7 * 0.75 * whole, 1);
  keys["load"] = {{"spin", 0.3}};
  EXPECT_EQ(refused_with(8, keys),
            "c.json: cluster.fabric.load.spin: no link is called 'spin'; known: spine, or one by "
            "name: leaf0-spine0");
}

TEST(Fabric, EcmpHasAFlowForEachNic) {
  Json keys{{"kind", "leaf_spine"}, {"nodes_per_leaf", 4}, {"spines", 4}, {"routing", "ecmp"}};
  EXPECT_EQ(read_with(8, keys).topology->parts, 8);
  keys["flows"] = 4;
  EXPECT_EQ(read_with(8, keys).topology->parts, 32);
  keys["routing"] = "even";
  keys["flows"] = 1;
  EXPECT_EQ(read_with(8, keys).topology->parts, 1);
}

TEST(Fabric, ParametersThatDoNotFitAreRefusedByName) {
  expect_refused(
      8,
      {{{{"kind", "torus"}, {"sizes", {2, 2}}}, "joins 4 nodes, fewer than the cluster's 8"},
       {{{"kind", "fat_tree"}, {"down", {4, 2}}, {"up", {2, 1}}}, "plugged into one leaf"},
       {{{"kind", "fat_tree"}, {"down", {4, 2}}, {"up", {1}}}, "as many numbers"},
       {{{"kind", "fat_tree"}, {"down", {4, 0}}, {"up", {1, 1}}}, "down.1"},
       {{{"kind", "leaf_spine"}, {"nodes_per_leaf", 4}}, "'spines' or 'oversubscription'"},
       {{{"kind", "rail"}, {"nodes_per_leaf", 4}, {"spines", 2}, {"planes", 2}}, "two planes"},
       {{{"kind", "torus"}, {"sizes", {8}}, {"placement", {0, 1, 2, 3, 4, 5, 6, 6}}},
        "8 different nodes, found 7"},
       {{{"kind", "torus"}, {"sizes", {8}}, {"placement", {8, 1, 2, 3, 4, 5, 6, 0}}}, "placement"},
       {{{"kind", "torus"}, {"sizes", {8}}, {"spines", 2}}, "spines"},
       {{{"kind", "clos"}}, "kind"},
       {{{"name", "spectrumx"}}, "spectrum-x"},
       {{{"kind", "fat_tree"}, {"down", {64, 64, 32}}, {"up", {1, 64, 4096}}}, "switches"}});
  Json cluster = nodes_with(8, {{"name", "spectrum-x"}});
  cluster["inter"]["oversubscription"] = 2;
  EXPECT_THROW(read_cluster(Reader(cluster, "c.json", "cluster")), InputError);
}

// Slurm's file lies beside the scenario's, and its nodes have names.
TEST(Fabric, ReadsSlurmsFile) {
  const test::Scratch scratch;
  test::write_text(scratch.path("topology.conf"),
                   "SwitchName=s0 Nodes=gpu[01-04]\nSwitchName=s1 Nodes=gpu[05-08]\n"
                   "SwitchName=top Switches=s[0-1]\n");
  const auto read = [&](const Json& placement) {
    const Json json = nodes_with(4, {{"kind", "slurm"},
                                     {"file", "topology.conf"},
                                     {"oversubscription", 4},
                                     {"placement", placement}});
    return read_cluster(Reader(json, scratch.path("c.json"), "cluster")).topology->nodes;
  };
  EXPECT_EQ(read("packed"), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(read("spread"), (std::vector<int>{0, 4, 1, 5}));
  EXPECT_EQ(read("gpu[02-03,07-08]"), (std::vector<int>{1, 2, 6, 7}));
  EXPECT_EQ(read({"gpu08", "gpu01", "gpu02", "gpu03"}), (std::vector<int>{7, 0, 1, 2}));
  EXPECT_THROW(read("gpu[02-03]"), InputError);
  EXPECT_THROW(read("gpu[07-10]"), InputError);
  EXPECT_THROW(read("gpu[07-"), InputError);
}

// A file may have trees that nothing joins: Slurm runs no job across them.
TEST(Fabric, NodesThatNoSwitchJoinsAreRefused) {
  const test::Scratch scratch;
  test::write_text(scratch.path("topology.conf"),
                   "SwitchName=alone Nodes=gpu09\nSwitchName=s0 Nodes=gpu[01-02]\n"
                   "SwitchName=s1 Nodes=gpu[05-06]\nSwitchName=top Switches=s[0-1]\n");
  const auto read = [&](const Json& placement) {
    const Json json =
        nodes_with(2, {{"kind", "slurm"}, {"file", "topology.conf"}, {"placement", placement}});
    return read_cluster(Reader(json, scratch.path("c.json"), "cluster")).topology->nodes;
  };
  for (const Json& placement : {Json("packed"), Json("gpu[01,09]")}) {
    const std::string said = input_error([&] { read(placement); });
    EXPECT_TRUE(contains(said, "cluster.fabric.placement: no switch joins nodes gpu0")) << said;
    EXPECT_TRUE(contains(said, "list nodes that one does, or give the switch above both")) << said;
  }
  EXPECT_EQ(read("gpu[01,06]"), (std::vector<int>{1, 4}));
}

// Two switches with a node each, and half of a node's cables between them.
TEST(Fabric, ReadsWhatIbnetdiscoverPrints) {
  const test::Scratch scratch;
  std::string text;
  for (const std::string side : {"1", "2"}) {
    const std::string other = side == "1" ? "2" : "1";
    text += "Switch\t41 \"S-" + side + "\"\t\t# \"MF0;ib" + side + ":MQM9700/U1\" lid 1 lmc 0\n";
    for (int port = 0; port < 8; ++port) {
      text += "[1] \"H-" + side + "\"[" + std::to_string(port) + "](1)\t\t# \"gpu0" + side +
              " mlx5_" + std::to_string(port) + "\" lid 2 4xNDR\n";
    }
    for (int i = 0; i < 4; ++i) text += "[9] \"S-" + other + "\"[9]\t# \"ib\" lid 1 4xNDR\n";
  }
  test::write_text(scratch.path("net.txt"), text);
  Json json = nodes_with(2, {{"kind", "ibnetdiscover"}, {"file", "net.txt"}});
  json["fabric"]["placement"] = "gpu[02,01]";
  const auto read = [&] { return read_cluster(Reader(json, scratch.path("c.json"), "cluster")); };
  EXPECT_NEAR(total_up(*read().topology, 0), 4 * kNic, 1);
  EXPECT_EQ(read().topology->nodes, (std::vector<int>{1, 0}));
  json["inter"]["nics"] = 4;
  const std::string said = input_error(read);
  EXPECT_TRUE(contains(said, "cluster.fabric.file: net.txt: no host has 4 ports")) << said;
  json["fabric"]["oversubscription"] = 2;
  json["inter"]["nics"] = 8;
  EXPECT_THROW(read(), InputError);
}

// Ranks of a group that is called "leaf", by where the job's nodes are.
int ranks_at_a_leaf(const Json& cluster, const std::string& key = "group_size") {
  Workload workload;
  workload.tensors.emplace_back();
  const Json strategy =
      key == "subgroup"
          ? Json{{"name", "s"}, {"local_sgd", {{"period", 4}, {"subgroup", "leaf"}}}}
          : Json{{"name", "s"}, {"hierarchy", {{"form", "sharded"}, {"group_size", "leaf"}}}};
  const Cluster read = read_cluster(Reader(cluster, "c.json", "cluster"));
  const Strategy made = read_strategy(Reader(strategy, "c.json", "strategies[0]"), workload, read);
  return key == "subgroup" ? made.local_sgd.subgroup : made.hierarchy.group_size;
}

TEST(Fabric, GroupsFollowTheLeaves) {
  const auto placed = [](const Json& placement, int per_leaf = 4) {
    return nodes_with(8, {{"kind", "leaf_spine"},
                          {"nodes", 16},
                          {"nodes_per_leaf", per_leaf},
                          {"spines", 4},
                          {"placement", placement}});
  };
  EXPECT_EQ(ranks_at_a_leaf(placed("packed")), 4 * 8);
  EXPECT_EQ(ranks_at_a_leaf(placed("packed"), "subgroup"), 4 * 8);
  EXPECT_EQ(ranks_at_a_leaf(placed("packed", 16)), 8 * 8);
  EXPECT_EQ(ranks_at_a_leaf(placed("spread")), 8);
  // Runs of 4, 2 and 2, and of 3, 4 and 1.
  EXPECT_EQ(ranks_at_a_leaf(placed({0, 1, 2, 3, 4, 5, 8, 9})), 2 * 8);
  EXPECT_EQ(ranks_at_a_leaf(placed({1, 2, 3, 4, 5, 6, 7, 8})), 8);
  EXPECT_EQ(ranks_at_a_leaf(nodes_with(8, {{"kind", "torus"}, {"sizes", {8}}})), 8);
  Json levels{{"node", "dgx-h100"}, {"nodes", 8}};
  levels["upper"] = Json::array(
      {{{"name", "spine"}, {"nodes_per_group", 2}, {"latency_us", 5}, {"bandwidth_gbps", 100}}});
  EXPECT_EQ(ranks_at_a_leaf(levels), 2 * 8);
  levels["nodes"] = 1;
  levels.erase("upper");
  EXPECT_EQ(ranks_at_a_leaf(levels), 8);
  levels["nodes"] = 8;
  EXPECT_EQ(input_error([&] { ranks_at_a_leaf(levels); }),
            "c.json: strategies[0].hierarchy.group_size: found \"leaf\", which needs a "
            "cluster.fabric or cluster.upper that has leaves");
}

// One node needs no network; a sweep may pass through it. What is wrong is wrong there too.
TEST(Fabric, AFabricOfOneNodeIsCheckedToo) {
  EXPECT_EQ(read_with(1, {{"name", "spectrum-x"}}).topology, nullptr);
  expect_refused(1, {{{{"kind", "torus"}, {"sizes", {0}}}, "sizes.0"},
                     {{{"kind", "torus"}, {"sizes", {4}}, {"spines", 2}}, "spines"},
                     {{{"kind", "torus"}, {"sizes", {4}}, {"placement", {0, 1}}},
                      "expected 1 different nodes"},
                     {{{"kind", "fat_tree"}, {"down", {4, 2}}, {"up", {1}}}, "as many numbers"}});
  const Json alone{{"name", "one"},
                   {"nodes", 1},
                   {"gpus_per_node", 1},
                   {"fabric", {{"kind", "torus"}, {"sizes", {4}}}}};
  EXPECT_THROW(read_cluster(Reader(alone, "c.json", "cluster")), InputError);
}

TEST(Fabric, TooSmallForTheClusterSaysSo) {
  for (const Json& keys : std::vector<Json>{
           {{"kind", "leaf_spine"}, {"nodes_per_leaf", 16}, {"spines", 1}, {"nodes", 4}},
           {{"kind", "rail"}, {"nodes_per_leaf", 4}, {"spines", 1}, {"nodes", 4}},
           {{"kind", "torus"}, {"sizes", {2, 2}}},
           {{"kind", "fat_tree"}, {"down", {2, 2}}, {"up", {1, 1}}},
           {{"kind", "dragonfly"}, {"groups", 2}, {"switches", 2}, {"hosts", 1}}}) {
    const std::string said = refused_with(8, keys);
    EXPECT_TRUE(contains(said, "it joins 4 nodes, fewer than the cluster's 8")) << keys << said;
  }
}

// LUMI's user model: 32 switches of 16 endpoints make groups of 128 nodes, each of a node's four at
// a switch of its own.
TEST(Fabric, DragonfliesShareNicsOutToSwitches) {
  Json keys{{"kind", "dragonfly"}, {"groups", 2}, {"switches", 32},
            {"hosts", 16},         {"links", 4},  {"switches_per_node", 4}};
  const auto topology = *read_with(128, keys).topology;
  EXPECT_EQ(topology.all_nodes(), 2 * 128);
  EXPECT_EQ(topology.lanes, 4);
  keys["switches_per_node"] = 3;
  EXPECT_TRUE(contains(refused_with(128, keys), "a divisor of the 8 NICs of a node"));
}

TEST(Fabric, IsWrittenBack) {
  const Json keys{{"kind", "torus"}, {"sizes", {4, 2}}, {"placement", "scattered"}, {"seed", 5}};
  const Cluster cluster = read_with(8, keys);
  const Json written = cluster_json(cluster, 6);
  const Cluster again = read_cluster(Reader(written, "c.json", "cluster"));
  EXPECT_EQ(again.topology->nodes, cluster.topology->nodes);
  EXPECT_EQ(again.topology->links.size(), cluster.topology->links.size());
  EXPECT_EQ(again.fabric, cluster.fabric);
}

}  // namespace
}  // namespace syncline::input
