// ibnetdiscover's output: cables by speed, hosts by their adapters, switches side by side, and what
// is wrong with a file.
#include "formats/fabric/files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "core/fabric/kinds.h"
#include "tests/support/expect.h"

namespace syncline::fabric {
namespace {

constexpr BytesPerSecond kHdr = 25e9;

std::string cable(const std::string& id, const std::string& description, const char* rate) {
  const char* guid = id.starts_with("H") ? "(c42a103) \t\t" : "\t\t";
  return "[1]\t\"" + id + "\"[1]" + guid + "# \"" + description + "\" lid 7 " + rate + "\n";
}

std::string switch_line(const std::string& id, const std::string& name) {
  return "\nvendid=0x2c9\nswitchguid=0x" + id + "\nSwitch\t41 \"S-" + id + "\"\t\t# \"MF0;" + name +
         ":MQM8700/U1\" enhanced port 0 lid 3 lmc 0\n";
}

// Leaves of so many hosts with adapters mlx5_0, mlx5_10 and so on, each cabled once to each spine;
// the cable between leaf 0 and spine 0 may be missing.
std::string two_levels(int leaves, int hosts, int adapters, int spines, bool broken = false) {
  std::string text = "#\n# Topology file: generated on Thu Nov 26 20:00:00 2026\n#\n";
  std::string above;
  for (int spine = 0; spine < spines; ++spine) {
    const std::string number = std::to_string(spine);
    above += switch_line("b" + number, "spine" + number);
    for (int leaf = broken && spine == 0 ? 1 : 0; leaf < leaves; ++leaf) {
      above += cable("S-a" + std::to_string(leaf), "leaf", "4xHDR");
    }
  }
  std::string adapters_own;
  for (int leaf = 0; leaf < leaves; ++leaf) {
    text += switch_line("a" + std::to_string(leaf), "leaf" + std::to_string(leaf));
    for (int host = hosts; host-- > 0;) {
      for (int adapter = adapters; adapter-- > 0;) {
        const std::string name = "gpu" + std::to_string(leaf * hosts + host);
        const std::string id = "H-" + name + "." + std::to_string(adapter);
        text += cable(id, name + " mlx5_" + std::to_string(10 * adapter), "4xHDR");
        adapters_own += "\ncaguid=0x1\nCa\t1 \"" + id + "\"\t\t# \"" + name +
                        "\"\n[1](c42a103)\t\"S-a" + std::to_string(leaf) +
                        "\"[1]\t\t# lid 9 lmc 0 \"leaf\" lid 3 4xHDR\n";
      }
    }
    text +=
        cable("H-sharp" + std::to_string(leaf), "Mellanox Technologies Aggregation Node", "4xHDR");
    for (int spine = broken && leaf == 0 ? 1 : 0; spine < spines; ++spine) {
      text += cable("S-b" + std::to_string(spine), "spine", "4xHDR");
    }
  }
  return text + above + adapters_own;
}

// Capacities by the names of both ends.
std::map<std::string, double> capacities(const Topology& topology) {
  std::map<std::string, double> all;
  for (const FabricLink& link : topology.links) all[topology.name(link)] += link.capacity;
  return all;
}

TEST(Ibnetdiscover, IsTheLeavesAndSpinesThatWereCabled) {
  const Topology read = ibnetdiscover_fabric(two_levels(4, 3, 1, 2), 1, kHdr, 1);
  LeafSpine shape;
  shape.nodes = 12;
  shape.nodes_per_leaf = 3;
  shape.spines = 2;
  shape.speed = kHdr;
  const Topology built = leaf_spine(shape);
  EXPECT_EQ(capacities(read), capacities(built));
  EXPECT_EQ(capacities(merge_pools(read)), capacities(merge_pools(built)));
  EXPECT_EQ(read.names.size(), 12U);
  for (const FabricLink& link : read.links) EXPECT_EQ(link.sort, "spine");
  // Hosts by number, whatever the order of the file.
  EXPECT_EQ(read.names[2], "gpu2");
  EXPECT_EQ(read.names[11], "gpu11");
  for (int node = 0; node < 12; ++node) {
    EXPECT_EQ(
        read.switches[static_cast<std::size_t>(read.plugs[static_cast<std::size_t>(node)])].name,
        "leaf" + std::to_string(node / 3));
  }
}

TEST(Ibnetdiscover, TakesWidthAndSpeedAndTheirReachedShare) {
  const std::map<std::string, double> kGbits{{"1xSDR", 2},     {"4xDDR", 16},  {"4xQDR", 32},
                                             {"4xFDR10", 40},  {"4xEDR", 100}, {"4xHDR", 200},
                                             {"2xNDR", 200},   {"4xNDR", 400}, {"4xXDR", 800},
                                             {"4xFDR", 54.56}, {"12xEDR", 300}};
  for (const auto& [word, gbits] : kGbits) {
    const std::string text = switch_line("a", "x") + cable("H-1", "n1", "4xHDR") +
                             cable("S-b", "y", word.c_str()) + switch_line("b", "y") +
                             cable("H-2", "n2", "4xHDR") + cable("S-a", "x", word.c_str());
    const Topology read = ibnetdiscover_fabric(text, 1, 0.5 * kHdr, 0.5);
    ASSERT_EQ(read.links.size(), 2U) << word;
    EXPECT_NEAR(read.links[0].capacity, 0.5 * gbits * kGigabitPerSecond, 1) << word;
  }
}

// Rails: each adapter is a lane, in the order of its number.
TEST(Ibnetdiscover, AdaptersAreLanes) {
  const std::string text = switch_line("a", "rail0") + cable("H-1", "n1 mlx5_2", "4xHDR") +
                           cable("H-2", "n2 mlx5_2", "4xHDR") +
                           cable("H-9", "login mlx5_0", "4xHDR") + switch_line("b", "rail1") +
                           cable("H-3", "n1 mlx5_10", "4xHDR") +
                           cable("H-4", "n2 mlx5_10", "4xHDR");
  const Topology read = ibnetdiscover_fabric(text, 2, 2 * kHdr, 1);
  EXPECT_EQ(read.lanes, 2);
  EXPECT_EQ(read.names, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(read.plugs, (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(test::input_error([&] { ibnetdiscover_fabric(text, 4, kHdr, 1); }),
            "no host has 4 ports, as 'inter' says of a node; by their ports there are 1 of 1, 2 of "
            "2");
}

// A port that came up with half of its lanes is the link that its host's messages meet.
TEST(Ibnetdiscover, ANarrowPortIsALink) {
  std::string text = two_levels(2, 2, 1, 1);
  const std::string whole = "\"gpu3 mlx5_0\" lid 7 4xHDR";
  text.replace(text.find(whole), whole.size(), "\"gpu3 mlx5_0\" lid 7 2xHDR");
  const auto links = capacities(ibnetdiscover_fabric(text, 1, kHdr, 1));
  EXPECT_EQ(links.at("gpu3.mlx5_0.1-leaf1"), kHdr / 2);
  EXPECT_EQ(links.at("leaf1-gpu3.mlx5_0.1"), kHdr / 2);
  EXPECT_EQ(links.size(), 6U);
}

// Without the cable a leaf has less; the spines are still one that messages are spread over.
TEST(Ibnetdiscover, AFailedCableLeavesSpinesSideBySide) {
  const Topology read = merge_pools(ibnetdiscover_fabric(two_levels(4, 4, 1, 4, true), 1, kHdr, 1));
  EXPECT_EQ(read.switches.size(), 5U);
  const auto links = capacities(read);
  EXPECT_EQ(links.at("leaf0-spine0..3"), 3 * kHdr);
  EXPECT_EQ(links.at("leaf1-spine0..3"), 4 * kHdr);
}

// Where the tool was started decides the order of its output, and nothing here.
TEST(Ibnetdiscover, TheOrderOfSwitchesDoesNotMatter) {
  const std::string text = two_levels(3, 2, 2, 2);
  std::vector<std::string> stanzas;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("\n\n", begin), text.size() - 1) + 1;
    stanzas.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  std::string reversed;
  for (auto stanza = stanzas.rbegin(); stanza != stanzas.rend(); ++stanza) reversed += *stanza;
  ASSERT_NE(text, reversed);
  const Topology one = ibnetdiscover_fabric(text, 2, 2 * kHdr, 1);
  const Topology other = ibnetdiscover_fabric(reversed, 2, 2 * kHdr, 1);
  EXPECT_EQ(one.names, other.names);
  EXPECT_EQ(one.plugs, other.plugs);
  EXPECT_EQ(capacities(merge_pools(one)), capacities(merge_pools(other)));
}

// Two planes never meet.
TEST(Ibnetdiscover, SpinesOfTwoPlanesStayApart) {
  std::string text;
  for (const std::string plane : {"0", "1"}) {
    for (const std::string leaf : {"0", "1"}) {
      text += switch_line("a" + plane + leaf, "leaf" + plane + leaf) +
              cable("H-" + leaf + plane, "n" + leaf + " mlx5_" + plane, "4xHDR") +
              cable("S-b" + plane, "spine", "4xHDR");
    }
    text += switch_line("b" + plane, "spine" + plane) +
            cable("S-a" + plane + "0", "leaf", "4xHDR") +
            cable("S-a" + plane + "1", "leaf", "4xHDR");
  }
  const Topology read = merge_pools(ibnetdiscover_fabric(text, 2, 2 * kHdr, 1));
  EXPECT_EQ(read.switches.size(), 6U);
  Ways ways(read);
  std::vector<int> links;
  EXPECT_THROW(ways.find(0, 3, 0, links), InputError);
  ways.find(0, 2, 0, links);
  EXPECT_EQ(links.size(), 2U);
}

TEST(Ibnetdiscover, SaysWhatIsWrong) {
  const std::string leaf = switch_line("a", "x") + cable("H-1", "n1", "4xHDR");
  const std::string no_rate = "line 6: expected a cable's width and speed, such as 4xHDR";
  const std::string no_quotes = ": expected a node in quotes, and its description";
  const std::pair<std::string, std::string> mistakes[] = {
      {leaf + cable("S-b", "y", "4xHDR"), "the switch S-b is named and not described"},
      {leaf + cable("S-b", "y", "4xHDR") + switch_line("b", "y"),
       "not all cables between x and y are reported by both"},
      {leaf + leaf, "line 9: the switch stands there twice"},
      {leaf + cable("H-1", "n1", "4xHDR"), "line 6: a port stands there twice"},
      {leaf + cable("H-2", "n2", "4x"), no_rate},
      {leaf + cable("H-2", "n2", "999xHDR"), no_rate},
      {leaf + cable("H-2", "n2", "99xXDR"), no_rate},
      {leaf + cable("H-2", "n2", "3xHDR"), no_rate},
      {leaf + "[2] \"H-", "line 6" + no_quotes},
      {"Switch\t: 0x0002c902 ports 36 \"MF0;x\" base port 0\n", "line 1" + no_quotes},
      {"", "no host has 1 ports, as 'inter' says of a node"},
      {"SwitchName=s0 Nodes=a\n", "line 1" + no_quotes},
  };
  for (const auto& [text, told] : mistakes) {
    EXPECT_EQ(test::input_error([&, text = text] { ibnetdiscover_fabric(text, 1, kHdr, 1); }),
              told);
  }
}

}  // namespace
}  // namespace syncline::fabric
