// Lists of published logs to compare: what is fitted, what is predicted, and wrong lists.

#include "studies/calibrate/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "tests/support/expect.h"
#include "tests/support/nccl_tables.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::calibrate {
namespace {

// By a list beside a link to the published logs.
std::vector<measure::FidelityTable> compared(const std::string& text) {
  const test::Scratch scratch;
  std::filesystem::create_directory_symlink(test::kNcclLogs, scratch.path("logs"));
  test::write_text(scratch.path("list.json"), text);
  return log_fidelity(
      scratch.path("list.json"), [](std::size_t, std::size_t) {}, [] { return false; });
}

TEST(LogFidelity, FitsSomeLogsAndPredictsOthers) {
  const auto tables = compared(R"({"from_bytes": 1048576, "tables": [{"name": "switch",
      "calibrate": ["logs/h100-cluster01-nvswitch_allreduce_n001x8.txt"],
      "predict": ["logs/h100-cluster01-nvswitch_allgather_n001x8.txt"]},
      {"name": "alone", "each_alone": ["logs/a100-echo-ndv4_allreduce_gpu008.txt",
                                       "logs/2080ti-100gib_allreduce_ring_n016x1.txt@16x1"]}]})");
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].name, "switch, all_gather 1x8");
  EXPECT_FALSE(tables[0].calibrated.empty());
  EXPECT_FALSE(tables[0].predicted.empty());
  // The second log of the second comparison is not clean: only the first is fitted.
  EXPECT_EQ(tables[1].name, "alone");
  EXPECT_TRUE(tables[1].predicted.empty());
  EXPECT_GT(tables[1].calibrated.size(), 5u);
  EXPECT_LT(tables[1].calibrated.size(), 30u);
  for (const double error : tables[1].calibrated) EXPECT_LT(std::fabs(error), 15);
}

// Rows and counts that are left out in turn come with intervals, of which some four in five hold.
TEST(LogFidelity, LeavesOutRowsAndCountsAndCountsIntervals) {
  const auto tables = compared(R"({"from_bytes": 65536, "tables": [
      {"name": "rows", "each_row": ["logs/a100-echo-ndv4_allreduce_gpu008.txt",
                                    "logs/a100-echo-ndv4_allreduce_gpu016.txt",
                                    "logs/h100-p5-batch_allreduce.txt"]},
      {"name": "counts", "each_count": ["logs/a100-echo-ndv4_allreduce_gpu002.txt",
                                        "logs/a100-echo-ndv4_allreduce_gpu004.txt",
                                        "logs/a100-echo-ndv4_allreduce_gpu008.txt",
                                        "logs/a100-echo-ndv4_allreduce_gpu016.txt"]}]})");
  ASSERT_EQ(tables.size(), 2u);
  for (const auto& table : tables) {
    EXPECT_TRUE(table.calibrated.empty());
    EXPECT_GT(table.predicted.size(), 10u);
    EXPECT_EQ(table.intervals.size(), table.predicted.size());
    const auto summary = measure::interval_summary(table.intervals);
    EXPECT_GT(summary->held, 60) << table.name;
    EXPECT_GT(summary->width, 1) << table.name;
    EXPECT_LT(summary->width, 60) << table.name;
  }
  // Two nodes cannot be predicted from one; the counts of one node can.
  EXPECT_EQ(tables[1].predicted.size(), 3 * 15u);
}

TEST(LogFidelity, MistakesInListsNameTheirPlace) {
  const std::pair<const char*, const char*> mistakes[] = {
      {R"({"tables": [{"name": "x"}]})", "tables[0].calibrate: missing"},
      {R"({"tables": [{"name": "x", "calibrate": [3]}]})", "expected file names"},
      {R"({"tables": [{"name": "x", "calibrat": []}]})", "did you mean 'calibrate'"},
      {R"({"tables": [{"name": "x", "each_alone": ["logs/none.txt"]}]})", "none.txt"},
      {R"({"table": []})", "did you mean 'tables'"},
  };
  for (const auto& [text, told] : mistakes) {
    const std::string error = test::input_error([&, text = text] { compared(text); });
    EXPECT_TRUE(test::contains(error, told)) << text << ": " << error;
  }
}

TEST(LogFiles, TheNameMaySayTheCounts) {
  const std::string log = test::kNcclLogs + "2080ti-10gbe-tcp_allreduce_ring_n016x1.txt";
  const auto tables = read_tables({log + "@16x1"});
  ASSERT_FALSE(tables.empty());
  EXPECT_EQ(tables.front().nodes, 16);
  EXPECT_EQ(tables.front().gpus_per_node, 1);
  EXPECT_THROW(read_tables({log + "@5x3"}), InputError);  // the log shows 16 ranks
}

}  // namespace
}  // namespace syncline::calibrate
