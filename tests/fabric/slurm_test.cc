// Slurm's topology.conf: host lists, trees of switches, and what is wrong with a file.
#include "formats/fabric/files.h"

#include <gtest/gtest.h>

#include <ctime>

#include "tests/support/expect.h"
#include "tests/support/text.h"

namespace syncline::fabric {
namespace {

using Names = std::vector<std::string>;

TEST(HostLists, AreThoseOfSlurm) {
  EXPECT_EQ(hosts_listed("tux[0-3,12,18-20]"),
            (Names{"tux0", "tux1", "tux2", "tux3", "tux12", "tux18", "tux19", "tux20"}));
  EXPECT_EQ(hosts_listed("gpu[08-11]"), (Names{"gpu08", "gpu09", "gpu10", "gpu11"}));
  EXPECT_EQ(hosts_listed("a,b[1-2]-ib,c"), (Names{"a", "b1-ib", "b2-ib", "c"}));
  EXPECT_EQ(hosts_listed("r[1-2]n[1-2]"), (Names{"r1n1", "r1n2", "r2n1", "r2n2"}));
  for (const char* wrong :
       {"a[1-", "a]1[", "a[3-1]", "a[x]", "a[0-99999999]", "a[]", "a[0-9999][0-9999]"}) {
    EXPECT_THROW(hosts_listed(wrong), InputError) << wrong;
  }
}

std::string repeated(const char* text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// Names are counted before they are made: many brackets, empty ones, and products that no machine
// has room for.
TEST(HostLists, AreBoundedBeforeTheyAreMade) {
  const auto told = [](const std::string& list) {
    return test::input_error([&] { hosts_listed(list); });
  };
  EXPECT_EQ(hosts_listed("n[0-131071]").size(), 1U << 17);
  EXPECT_EQ(hosts_listed("n[0-255][0-511]").back(), "n255511");
  EXPECT_EQ(hosts_listed("n[0-131070],m").size(), 1U << 17);
  for (const char* large :
       {"n[0-131072]", "n[0-131071],m", "n[0-255][0-512]", "n[0-131070],m[0-1]",
        "n[0-131071][0-131071][0-131071][0-131071][0-131071]", "n[0-99999999]"}) {
    EXPECT_EQ(told(large), "more than 2^17 names") << large;
  }
  EXPECT_TRUE(test::contains(told("n[0-131071][0-131071][]"), "more than 2^17 names"));
  EXPECT_TRUE(test::contains(told("n[0-9][0-9][]"), "has an empty bracket"));
  EXPECT_TRUE(test::contains(told("n" + repeated("[1]", 30000)), "more than 255 letters"));
  EXPECT_TRUE(test::contains(told("n[0-131071]" + std::string(1000000, 'x')), "255 letters"));
  EXPECT_TRUE(test::contains(told("n[" + repeated("0-131071,", 100000) + "1]"), "2^17 names"));
}

// A file's lists are bounded together, and a chain of switches is summed up once.
TEST(SlurmFabric, IsBoundedAsAWhole) {
  const auto told = [](const std::string& text) {
    return test::input_error([&] { slurm_fabric(text, 1, 1); });
  };
  std::string many, chain;
  for (int i = 0; i < 100; ++i) {
    const std::string id = std::to_string(i);
    many += "SwitchName=s" + id + " Nodes=n" + id + "x[0-131070]\n";
  }
  EXPECT_EQ(told(many), "line 2: more than 2^17 names");
  constexpr int kLong = 8190;
  for (int i = 0; i < kLong; ++i) {
    chain += "SwitchName=s" + std::to_string(i) + " Switches=s" + std::to_string(i + 1) + "\n";
  }
  const std::string leaf = std::to_string(kLong);
  const std::clock_t begin = std::clock();
  const Topology read = slurm_fabric(chain + "SwitchName=s" + leaf + " Nodes=n[0-131070]\n", 1, 1);
  never_full(read, 1);
  // A walk up the chain from each node would take 10^9 steps.
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 1.0);
  EXPECT_EQ(read.links.back().capacity, 131071);
  EXPECT_EQ(read.links.front().capacity, 131071);
  chain.clear();
  for (int i = 0; i < 100000; ++i) {
    chain += "SwitchName=s" + std::to_string(i) + " Switches=s" + std::to_string(i + 1) + "\n";
  }
  EXPECT_EQ(told(chain), "line 8192: more than 8192 switches");
}

// The example of Slurm's manual page, with a comment and a speed.
constexpr const char* kExample = R"(# a tree
SwitchName=s0 Nodes=tux[0-3]  LinkSpeed=900
switchname=s1 nodes=tux[4-7]
SwitchName=s2 Switches=s[0-1]
)";

TEST(SlurmFabric, IsATreeWithTrunksSizedByTheNodesBelow) {
  const Topology topology = slurm_fabric(kExample, 10, 2);
  EXPECT_EQ(topology.names.size(), 8U);
  EXPECT_EQ(topology.names[4], "tux4");
  EXPECT_EQ(topology.switches.size(), 3U);
  ASSERT_EQ(topology.links.size(), 4U);
  for (const FabricLink& link : topology.links) {
    EXPECT_EQ(link.capacity, 4 * 10 / 2.0);
    EXPECT_EQ(link.sort, "s2");
  }
  Ways ways(topology);
  std::vector<int> links;
  ways.find(0, 7, 0, links);
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(topology.name(topology.links[static_cast<std::size_t>(links[0])]), "s0-s2");
  // At 1:1 no job fills it.
  const Topology balanced = slurm_fabric(kExample, 10, 1);
  EXPECT_EQ(never_full(balanced, 10), std::vector<bool>(4, true));
}

// The order of lines does not matter: Slurm's tools write leaves first or last.
TEST(SlurmFabric, MayNameSwitchesBeforeTheyAreDescribed) {
  const Topology read = slurm_fabric(
      "SwitchName=top Switches=a,b\nSwitchName=b Nodes=y\nSwitchName=a Nodes=x\n", 1, 1);
  EXPECT_EQ(read.names, (Names{"y", "x"}));
  EXPECT_EQ(read.links.size(), 4U);
}

// Spines above the same leaves share the uplinks: as many bytes leave a leaf as with one spine.
TEST(SlurmFabric, SpinesAboveTheSameLeavesAreOne) {
  const std::string leaves = "SwitchName=s0 Nodes=a[0-3]\nSwitchName=s1 Nodes=a[4-7]\n";
  const Topology one = slurm_fabric(leaves + "SwitchName=s4 Switches=s[0-1]\n", 1, 2);
  const Topology four = slurm_fabric(leaves +
                                         "SwitchName=s4 Switches=s[0-1]\n"
                                         "SwitchName=s5 Switches=s[0-1]\n"
                                         "SwitchName=top Switches=s[4-5]\n",
                                     1, 2);
  const Topology flat =
      slurm_fabric(leaves + "SwitchName=s4 Switches=s[0-1]\nSwitchName=s5 Switches=s[0-1]\n", 1, 2);
  EXPECT_EQ(flat.links.size(), one.links.size());
  EXPECT_EQ(flat.switches.size(), one.switches.size());
  EXPECT_EQ(flat.names, one.names);
  EXPECT_EQ(four.switches.size(), one.switches.size() + 1);
}

TEST(SlurmFabric, SaysWhichLineIsWrong) {
  for (const auto& [text, told] : std::initializer_list<std::pair<const char*, const char*>>{
           {"SwitchName=s0 Nodes=a\nSwitchName=s1 Nodes=a\n",
            "line 2: node a is below two switches"},
           {"\n\nSwitchName=s0\n", "line 3: switch s0 needs Switches or Nodes, one of both"},
           {"Nodes=a\n", "line 1: expected one SwitchName or BlockName"},
           {"SwitchName=s[0-1] Nodes=a\n", "line 1: expected one SwitchName or BlockName"},
           {"hello\n", "line 1: 'hello' is no KEY=VALUE"},
           {"SwitchName=a Switches=b\nSwitchName=c Switches=b,d\n",
            "line 2: switch b is below two switches, which differ in others"},
           {"SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=x Nodes=n\n",
            "switches are below each other in a circle"},
           {"SwitchName=a Switches=a\nSwitchName=x Nodes=n\n",
            "switches are below each other in a circle"},
           {"SwitchName=a Nodes=x\nSwitchName=a Nodes=y\n", "line 2: switch a is defined twice"},
           {"BlockName=a Nodes=x\nBlockName=a Nodes=y\n", "line 2: block a is defined twice"},
           {"SwitchName=a Nodes=x\nSwitchName=top Switches=a,b\n",
            "switch b has no line of its own"}}) {
    EXPECT_EQ(test::input_error([text = text] { slurm_fabric(text, 1, 1); }), told);
  }
  EXPECT_THROW(
      slurm_fabric("SwitchName=a Nodes=n\nSwitchName=b Switches=a\nSwitchName=a Switches=b\n", 1,
                   1),
      InputError);
}

// `scontrol show topology` lists below an upper switch its switches and all their nodes.
TEST(SlurmFabric, MayBeWhatScontrolShows) {
  const Topology shown = slurm_fabric(
      "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[0-3]\n"
      "SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[4-7]\n"
      "SwitchName=root Level=1 LinkSpeed=1 Nodes=n[0-7] Switches=leaf[1-2]\n",
      10, 2);
  const Topology written = slurm_fabric(
      "SwitchName=leaf1 Nodes=n[0-3]\nSwitchName=leaf2 Nodes=n[4-7]\n"
      "SwitchName=root Switches=leaf[1-2]\n",
      10, 2);
  EXPECT_EQ(shown.names, written.names);
  EXPECT_EQ(shown.plugs, written.plugs);
  ASSERT_EQ(shown.links.size(), written.links.size());
  for (std::size_t i = 0; i < shown.links.size(); ++i) {
    EXPECT_EQ(shown.links[i].capacity, written.links[i].capacity);
  }
}

// Blocks are switches below one that the file does not name.
TEST(SlurmFabric, BlocksAreJoinedByOneSwitch) {
  const std::string blocks =
      "BlockName=b1 Nodes=gpu[01-18]\nBlockName=b2 Nodes=gpu[19-36]\nBlockSizes=18,36\n"
      "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=gpu[01-36] BlockSize=36\n";
  const Topology read = slurm_fabric(blocks, 10, 2);
  const Topology tree = slurm_fabric(
      "SwitchName=b1 Nodes=gpu[01-18]\nSwitchName=b2 Nodes=gpu[19-36]\n"
      "SwitchName=top Switches=b[1-2]\n",
      10, 2);
  EXPECT_EQ(read.plugs, tree.plugs);
  EXPECT_EQ(read.switches.size(), 3u);
  ASSERT_EQ(read.links.size(), tree.links.size());
  EXPECT_EQ(read.links.front().capacity, tree.links.front().capacity);
  EXPECT_EQ(slurm_fabric("BlockName=b1 Nodes=n[1-4]\n", 10, 2).switches.size(), 1u);
}

void expect_same(const Topology& a, const Topology& b) {
  EXPECT_EQ(a.names, b.names);
  EXPECT_EQ(a.plugs, b.plugs);
  ASSERT_EQ(a.links.size(), b.links.size());
  for (std::size_t i = 0; i < a.links.size(); ++i) {
    EXPECT_EQ(a.links[i].capacity, b.links[i].capacity);
  }
}

// The keys of Slurm's documentation of topology.yaml (25.05).
TEST(SlurmFabric, TopologyYamlIsTheSameFabric) {
  const char* kTree =
      "---\n- topology: flat\n  cluster_default: false\n  flat: true\n"
      "- topology: topo1\n  cluster_default: true\n  tree:\n    switches:\n"
      "      - switch: root\n        children: s[1-2]\n"
      "      - switch: s1\n        nodes: node[01-02]\n"
      "      - switch: s2\n        nodes: node[03-04]\n";
  expect_same(slurm_fabric(kTree, 10, 2),
              slurm_fabric("SwitchName=root Switches=s[1-2]\nSwitchName=s1 Nodes=node[01-02]\n"
                           "SwitchName=s2 Nodes=node[03-04]\n",
                           10, 2));
  const char* kBlocks =
      "- topology: topo2\n  block:\n    block_sizes: [4, 16]\n    blocks:\n"
      "      - block: b1\n        nodes: node[01-04]\n"
      "      - block: b2\n        nodes: node[05-08]\n";
  expect_same(
      slurm_fabric(kBlocks, 10, 2),
      slurm_fabric("BlockName=b1 Nodes=node[01-04]\nBlockName=b2 Nodes=node[05-08]\n", 10, 2));
  for (const auto& [text, words] :
       {std::pair{"- topology: a\n  tree:\n", "topology 'a' names no nodes"},
        {"- topology: a\n  flat: true\n", "topology 'a' is flat"},
        {"topology: a\n", "expected a list of topologies"},
        {"- topology: a\n  tree: {switches: [{switch: s1}]}\n", "needs children or nodes"},
        {"- topology: a\n  tree: {switches: [{nodes: n1}]}\n", "expected a list of switch NAME"}}) {
    const std::string said = test::input_error([&] { slurm_fabric(text, 1, 1); });
    EXPECT_NE(said.find(words), said.npos) << said;
  }
}

}  // namespace
}  // namespace syncline::fabric
