// NCCL's own answers, row by row, and what must hold beside them.
#include "core/collective/nccl_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace syncline::collective {
namespace {

constexpr double kGb = kGigabytePerSecond;

// The columns of the answers' inputs: nodes, GPUs a node, compute capability, AMD; ring and tree
// (intra, inter, channels, paths; the tree's pattern); NVLS; channels of the communicator.
NcclTopology topology(int nodes, int gpus, int capability, bool amd, double intra, double inter,
                      int channels, NcclPath path_intra, NcclPath path_inter, double tree_intra,
                      double tree_inter, int tree_channels, NcclPattern pattern, double nvls_intra,
                      double nvls_inter, int nvls_channels, bool nvswitch, int comm_channels) {
  NcclTopology t;
  t.nodes = nodes;
  t.ranks = nodes * gpus;
  t.least_capability = t.most_capability = capability;
  t.cpu = amd ? NcclHints::Cpu::kAmd : NcclHints::Cpu::kIntel;
  const auto graph = [&](int count, double inside, double outside) {
    return NcclGraph{static_cast<double>(count),
                     inside * kGb,
                     outside * kGb,
                     path_intra,
                     path_inter,
                     pattern,
                     true,
                     0};
  };
  t.ring = graph(channels, intra, inter);
  t.tree = graph(tree_channels, tree_intra, tree_inter);
  t.nvls = graph(nvls_channels, nvls_intra, nvls_inter);
  t.nvswitch = nvswitch;
  t.channels = comm_channels;
  return t;
}

std::map<std::string, NcclTopology> cases() {
  using enum NcclPath;
  constexpr auto kBalanced = NcclPattern::kBalancedTree;
  constexpr auto kPlain = NcclPattern::kTree;
  return {
      {"dgxa100_1x8",
       topology(1, 8, 80, true, 20, 20, 12, kNvl, kPix, 20, 20, 12, kBalanced, 0, 0, 0, true, 24)},
      {"dgxh100_1x8", topology(1, 8, 90, false, 40, 40, 12, kNvl, kPix, 40, 40, 12, kBalanced, 24,
                               24, 8, true, 24)},
      {"dgxh100_2x8_ib400",
       topology(2, 8, 90, false, 40, 40, 8, kNvl, kPxn, 40, 40, 8, kBalanced, 40, 40, 8, true, 16)},
      {"dgxh100_8x8_ib400",
       topology(8, 8, 90, false, 40, 40, 8, kNvl, kPxn, 40, 40, 8, kBalanced, 40, 40, 8, true, 16)},
      {"h100_3x8_treepat_intel_ib",
       topology(3, 8, 90, false, 40, 40, 8, kNvl, kPxn, 40, 40, 8, kPlain, 0, 0, 0, true, 16)},
      {"pcie_1x4_gen3",
       topology(1, 4, 75, false, 9, 9, 1, kPhb, kPix, 9, 9, 1, kBalanced, 0, 0, 0, false, 2)},
      {"socket10g_2x1_a100",
       topology(2, 1, 80, false, 1.2, 1.2, 1, kLoc, kPhb, 1.2, 1.2, 1, kPlain, 0, 0, 0, false, 2)},
      {"socket10g_8x1_h200",
       topology(8, 1, 90, false, 1.2, 1.2, 1, kLoc, kPhb, 1.2, 1.2, 1, kPlain, 0, 0, 0, false, 2)},
      {"socket1g_4x1_h200",
       topology(4, 1, 90, false, .12, .12, 1, kLoc, kPhb, .12, .12, 1, kPlain, 0, 0, 0, false, 2)},
      {"socket10g_8x4_pcie", topology(8, 4, 75, false, 1.2, 1.2, 1, kPhb, kPhb, 1.2, 1.2, 1,
                                      kBalanced, 0, 0, 0, false, 2)},
      {"rtx5090_3x1_socket_2ch",
       topology(3, 1, 120, false, 1.2, 1.2, 2, kLoc, kPhb, 1.2, 1.2, 2, kPlain, 0, 0, 0, false, 4)},
      {"a100pcie_2x1_ib_nccl216like",
       topology(2, 1, 80, true, 24, 24, 1, kLoc, kPhb, 48, 24, 1, kPlain, 0, 0, 0, false, 2)},
      {"ib100_16x8_v100nvl",
       topology(16, 8, 70, false, 12, 12, 4, kNvl, kPxb, 12, 12, 4, kBalanced, 0, 0, 0, false, 8)},
  };
}

const std::map<std::string, CollectiveKind> kKinds = {
    {"AllReduce", CollectiveKind::kAllReduce},
    {"AllGather", CollectiveKind::kAllGather},
    {"ReduceScatter", CollectiveKind::kReduceScatter},
    {"Broadcast", CollectiveKind::kBroadcast}};

template <typename Word>
int index_of(const std::string& name, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (to_string(static_cast<Word>(i)) == name) return static_cast<int>(i);
  }
  ADD_FAILURE() << name;
  return 0;
}

// 1e-4 of the value, or half a unit of the four printed decimals.
::testing::AssertionResult as_printed(double value, const std::string& printed) {
  const double wanted = std::stod(printed);
  const double off = std::abs(value - wanted);
  if (off <= 1e-4 * std::abs(wanted) || off <= 0.5001e-4) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << value << " is not " << printed;
}

TEST(NcclModel, EveryRowOfNcclsOwnAnswers) {
  std::ifstream in(std::string(SYNCLINE_SOURCE_DIR) + "/tests/data/nccl_2.28.9_golden.csv");
  const auto topologies = cases();
  std::string line;
  std::getline(in, line);  // source
  std::getline(in, line);  // columns
  ASSERT_EQ(line, "case,kind,coll,algo,proto,bytes,latency_us,algbw_GBs_table,predicted_us,best");
  int table_rows = 0;
  int choice_rows = 0;
  std::map<std::string, int> listed;  // cells by case and collective
  while (std::getline(in, line)) {
    std::vector<std::string> cells;
    std::istringstream words(line);
    std::string cell;
    while (std::getline(words, cell, ',')) cells.push_back(cell);
    cells.resize(10);
    const NcclTopology& t = topologies.at(cells[0]);
    const CollectiveKind kind = kKinds.at(cells[2]);
    const NcclTable table = nccl_table(t, kind);
    const auto a = static_cast<std::size_t>(index_of<NcclAlgorithm>(cells[3], kNcclAlgorithms));
    const auto p = static_cast<std::size_t>(index_of<NcclProtocol>(cells[4], kNcclProtocols));
    if (cells[1] == "table") {
      ++table_rows;
      ++listed[cells[0] + "/" + cells[2]];
      EXPECT_TRUE(as_printed(table[a][p].latency / kMicrosecond, cells[6])) << line;
      EXPECT_TRUE(as_printed(table[a][p].bandwidth / kGb, cells[7])) << line;
      continue;
    }
    ++choice_rows;
    const NcclChoice choice = nccl_choice(t, table, kind, std::stod(cells[5]));
    EXPECT_EQ(to_string(choice.pick.algorithm), cells[3]) << line;
    EXPECT_EQ(to_string(choice.pick.protocol), cells[4]) << line;
    EXPECT_TRUE(as_printed(choice.time / kMicrosecond, cells[8])) << line;
  }
  EXPECT_EQ(table_rows, 175);
  EXPECT_EQ(choice_rows, 1612);
  // What is not listed is not offered.
  for (const auto& [name, t] : topologies) {
    for (const auto& [word, kind] : kKinds) {
      int offered = 0;
      for (const auto& row : nccl_table(t, kind)) {
        for (const auto& entry : row) offered += entry.bandwidth > 0;
      }
      EXPECT_EQ(offered, listed[name + "/" + word]) << name << " " << word;
    }
  }
}

// Printed by NCCL itself (NVIDIA/nccl issue 1453): 128 bytes, Tree / LL.
TEST(NcclModel, APrintedTimeOfNcclItself) {
  const NcclTopology t = cases().at("h100_3x8_treepat_intel_ib");
  const auto table = nccl_table(t, CollectiveKind::kAllReduce);
  const NcclChoice choice = nccl_choice(t, table, CollectiveKind::kAllReduce, 128);
  EXPECT_EQ(choice.pick.algorithm, NcclAlgorithm::kTree);
  EXPECT_EQ(choice.pick.protocol, NcclProtocol::kLl);
  EXPECT_NEAR(choice.time / kMicrosecond, 25.214764, 1e-5);
}

TEST(NcclModel, UnsupportedChoicesHaveNoTime) {
  const NcclTopology t = cases().at("pcie_1x4_gen3");
  const auto table = nccl_table(t, CollectiveKind::kAllReduce);
  EXPECT_FALSE(nccl_time(t, table, CollectiveKind::kAllReduce,
                         {NcclAlgorithm::kRing, NcclProtocol::kLl128}, 1024));
  EXPECT_FALSE(nccl_time(t, table, CollectiveKind::kAllReduce,
                         {NcclAlgorithm::kNvls, NcclProtocol::kSimple}, 1024));
}

// A Reduce costs what a Broadcast does; a slower NIC never makes anything faster.
TEST(NcclModel, SlowerNicsMakeNoTopologyFaster) {
  for (const auto& [name, t] : cases()) {
    const auto broadcast = nccl_table(t, CollectiveKind::kBroadcast);
    const auto reduce = nccl_table(t, CollectiveKind::kReduce);
    NcclTopology slower = t;
    for (NcclGraph* graph : {&slower.ring, &slower.tree, &slower.nvls}) {
      graph->inter_latency = 5e-6;
      graph->inter /= 2;
      graph->intra /= 2;
    }
    for (const auto kind : kAllCollectiveKinds) {
      const auto table = nccl_table(t, kind);
      const auto other = nccl_table(slower, kind);
      for (double bytes = 8; bytes < 1e10; bytes *= 4) {
        EXPECT_LE(nccl_choice(t, table, kind, bytes).time,
                  nccl_choice(slower, other, kind, bytes).time)
            << name << " " << bytes;
        EXPECT_EQ(nccl_choice(t, broadcast, CollectiveKind::kBroadcast, bytes).time,
                  nccl_choice(t, reduce, CollectiveKind::kReduce, bytes).time);
      }
    }
  }
}

}  // namespace
}  // namespace syncline::collective
