// What a log says in silence: columns that are not where the head says, rows of several kinds in
// one table, what NCCL was made to take, and whether what the reader noticed reaches the answer.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/log_files.h"
#include "tests/support/expect.h"
#include "tests/support/nccl_tables.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::calibrate {
namespace {

using cost::ForcedAlgorithm;
using cost::MeasuredTable;

std::vector<MeasuredTable> log_tables(const std::string& text, const std::string& ending = "",
                                      const std::string& algorithm = "nccl") {
  const test::Scratch scratch;
  test::write_text(scratch.path("x.txt"), text);
  return read_tables({scratch.path("x.txt") + ending}, algorithm);
}

MeasuredTable only_table(const std::string& text, const std::string& ending = "") {
  const auto tables = log_tables(text, ending);
  EXPECT_EQ(tables.size(), 1u);
  return tables.at(0);
}

std::string log_refusal(const std::string& text, const std::string& ending = "") {
  return test::input_error([&] { log_tables(text, ending); });
}

const std::string kTwoHosts =
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid  1 on hostA device  0 [0x0f] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid  2 on hostB device  0 [0x0f] NVIDIA H100 80GB HBM3\n";
const std::string kModernHead =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  "
    "algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " "
    "(GB/s)  (GB/s)\n";

std::string printed(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// One measurement as nccl-tests prints it, on so many ranks.
std::string printed_place(double size, double time, int ranks = 2) {
  const double alg = size / time / 1e3;
  return printed("%9.1f", time) + printed(" %7.2f", alg) +
         printed(" %7.2f", alg * 2 * (ranks - 1) / ranks) + "      0";
}

std::string printed_row(long size, double time, const std::string& words = "float sum -1",
                        int ranks = 2) {
  const long bytes = words.starts_with("f8") ? 1 : words.starts_with("float") ? 4 : 2;
  return "  " + std::to_string(size) + " " + std::to_string(size / bytes) + " " + words + " " +
         printed_place(static_cast<double>(size), time, ranks) +
         printed_place(static_cast<double>(size), time * 1.01, ranks) + "\n";
}

// One place as RCCL's tests write it with -Z, on two nodes of eight processes.
std::string listed_place(bool json, long size, int in_place, double time) {
  const double alg = static_cast<double>(size) / time / 1e3;
  const std::string values[] = {"0",
                                "\"AllReduce\"",
                                "2",
                                "16",
                                "8",
                                "1",
                                std::to_string(size),
                                "\"float\"",
                                "\"sum\"",
                                std::to_string(in_place),
                                printed("%.6f", time),
                                printed("%.6f", alg),
                                printed("%.6f", alg * 2 * 15 / 16),
                                "\"0\""};
  const char* const names[] = {"numCycle",    "name",  "nodes", "ranks", "ranksPerNode",
                               "gpusPerRank", "size",  "type",  "redop", "inPlace",
                               "time",        "algBw", "busBw", "wrong"};
  std::string text = json ? "{" : "";
  for (std::size_t i = 0; i < std::size(values); ++i) {
    text += (i == 0 ? ""
             : json ? ", "
                    : ",") +
            (json ? "\"" + std::string(names[i]) + "\":" : "") + values[i];
  }
  return text + (json ? "}" : "\n");
}

std::string printed_rows(double slower = 1, const std::string& words = "float sum -1",
                         int ranks = 2) {
  std::string text;
  for (const long mebibytes : {1, 4, 16, 64}) {
    const long size = mebibytes << 20;
    text += printed_row(size, slower * (50 + static_cast<double>(size) / 2e4), words, ranks);
  }
  return text;
}

const std::string kGoodEnd = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.3\n";

bool says_of(const MeasuredTable& table, const std::string& part) {
  return test::any_contains(table.notes, part);
}

// ---------------------------------------------------------------------------------------------
// Tests of other exchanges, and pairs of nodes

TEST(LogKinds, AlltoallAndSendrecvSayWhatTheirLinksCarry) {
  const auto said = [](const std::string& test, const std::string& words) {
    return log_refusal("# Collective test starting: " + test + "_perf\n" + kTwoHosts + kModernHead +
                       "  67108864 " + words + " 1000 67.11 33.55 0 1000 67.11 " + "33.55 N/A\n" +
                       kGoodEnd);
  };
  // Half of a rank's 64 MiB leaves its node, or all of it: in 1 ms.
  const std::string all = said("alltoall", "8388608 float none -1");
  EXPECT_NE(all.find("sent 268 Gbit/s out of each node"), std::string::npos) << all;
  const std::string pairs = said("sendrecv", "16777216 float sum -1");
  EXPECT_NE(pairs.find("sent 537 Gbit/s out of each node"), std::string::npos) << pairs;
}

// Without checks nothing tells alltoall from all_gather.
TEST(LogKinds, UncheckedColumnsNameNoCollective) {
  const std::string row = "  67108864 8388608 float none -1 1000 67.11 33.55 N/A 1000 67.11 33.55 ";
  EXPECT_NE(log_refusal(kTwoHosts + kModernHead + row + "N/A\n").find("name the file after it"),
            std::string::npos);
  EXPECT_EQ(only_table(kTwoHosts + kModernHead +
                       "  67108864 8388608 float none -1 1000 67.11 33.55 0 1000 67.11 33.55 0\n")
                .test,
            "all_gather");
}

// Among runs of many pairs of nodes the slow one is named.
TEST(LogKinds, ASlowPairIsNamed) {
  const test::Scratch scratch;
  std::vector<std::string> pairs;
  for (const auto& [name, slower] : {std::pair{"a-b", 1.0}, {"a-c", 1.02}, {"b-d", 3.0}}) {
    pairs.push_back(scratch.path(std::string(name) + ".txt"));
    test::write_text(pairs.back(), kTwoHosts + kModernHead + printed_rows(slower) + kGoodEnd);
  }
  const auto said = [&] {
    return test::input_error([&] { calibration_of(read_tables(pairs, "nccl"), {}, "pairs"); });
  };
  EXPECT_NE(said().find("b-d.txt is 2.9 times as slow as the median of 3 tables"),
            std::string::npos)
      << said();
  // A pair that is slower by a quarter counts, and is named too.
  test::write_text(pairs.back(), kTwoHosts + kModernHead + printed_rows(1.25) + kGoodEnd);
  const auto warnings = calibration_of(read_tables(pairs, "nccl"), {}, "pairs").warnings;
  EXPECT_TRUE(
      test::any_contains(warnings, "b-d.txt is 1.2 times as slow as the median of 3 tables"))
      << warnings.size();
  test::write_text(pairs.back(), kTwoHosts + kModernHead + printed_rows(3.0) + kGoodEnd);
  // Two tables do not say which of them is slow.
  pairs.erase(pairs.begin());
  EXPECT_NE(said().find("two clusters or networks"), std::string::npos) << said();
}

// ---------------------------------------------------------------------------------------------
// size / algbw is the time

// Up to 2.12 alltoall's rows had blanks below "redop": the time is the first number.
TEST(LogKinds, ABlankUnderTheHeadShiftsNothing) {
  const std::string text =
      "#       size         count      type   redop     time   algbw   busbw  error     time   "
      "algbw "
      "  busbw  error\n"
      "#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  "
      "(GB/s) "
      " (GB/s)\n"
      "    67108864        262144     float           130520    0.51    0.50  0e+00   129962    "
      "0.52 "
      "   0.51  1e+00\n"
      "   134217728        524288     float           260735    0.51    0.51  0e+00   259562    "
      "0.52 "
      "   0.51  1e+00\n";
  const MeasuredTable table = nccl_log_from_text("x.txt", text).at(0);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_NEAR(table.rows[0].out_of_place.value_or(0), 0.130520, 1e-9);
  EXPECT_NEAR(table.rows[1].in_place.value_or(0), 0.259562, 1e-9);
  // Blank below "redop", and a root; blank below both.
  for (const std::string lead : {"          -1", "            "}) {
    const MeasuredTable blank =
        nccl_log_from_text("x.txt", kModernHead + "  67108864  262144  float " + lead +
                                        printed_place(67108864, 130520, 64) +
                                        printed_place(67108864, 129962, 64) + "\n")[0];
    EXPECT_NEAR(blank.rows.at(0).out_of_place.value_or(0), 0.130520, 1e-9) << lead;
    EXPECT_NEAR(blank.rows.at(0).in_place.value_or(0), 0.129962, 1e-9) << lead;
    EXPECT_EQ(blank.rows[0].redop, "");
  }
}

TEST(LogKinds, ATimeThatContradictsSizeAndBandwidthIsSkippedAndReported) {
  // A column more than the head has, Gbit/s in place of GB/s, GiB/s, a typing error in one row.
  const std::string shifted = "  16777216 4194304 float sum -1 7 " + printed_place(16777216, 900) +
                              printed_place(16777216, 900) + "\n";
  const std::string bits =
      "  16777216 4194304 float sum -1 900.0 149.13 149.13 0 900.0 149.13 149.13 0\n";
  const std::string gibi =
      "  16777216 4194304 float sum -1 900.0 17.36 17.36 0 900.0 17.36 17.36 0\n";
  for (const std::string& wrong : {shifted, bits, gibi}) {
    const MeasuredTable table =
        only_table(kTwoHosts + kModernHead + printed_row(1048576, 100) + wrong + kGoodEnd);
    EXPECT_EQ(cost::usable_points(table, cost::Place::kOutOfPlace).size(), 1u) << wrong;
    EXPECT_EQ(cost::usable_points(table, cost::Place::kInPlace).size(), 1u) << wrong;
    EXPECT_TRUE(test::any_contains(table.left_out, "but size / algbw is")) << wrong;
    const auto calibration = calibration_of({table}, {}, "one");
    EXPECT_TRUE(test::any_contains(calibration.warnings, "but size / algbw is"));
  }
  // A table without one time that holds is refused, and says why.
  EXPECT_NE(log_refusal(kTwoHosts + kModernHead + bits + kGoodEnd).find("but size / algbw is"),
            std::string::npos);
  // Without a bandwidth nothing holds a time.
  EXPECT_NE(log_refusal(kTwoHosts + kModernHead +
                        "  16777216 4194304 float sum -1 900.0 N/A N/A 0 900.0 N/A "
                        "N/A 0\n")
                .find("without an algbw"),
            std::string::npos);
}

// Whatever digits a version prints, what it printed itself is believed.
TEST(LogKinds, RoundedDigitsContradictNothing) {
  for (const auto* line : {"8 2 float sum -1 25.31 0.00 0.00 0 24.90 0.00 0.00 0\n",
                           "128 32 float sum -1 25.31 0.01 0.01 0 24.90 0.01 0.01 0\n",
                           "1048576 262144 float sum -1 76.3 13.7 13.7 0 76 13.8 13.8 0\n",
                           "68719476736 17179869184 float sum -1 1.2e+07 5.73 5.73 0 1.2e+07 5.73 "
                           "5.73 0\n"}) {
    const MeasuredTable table =
        only_table("# COLLECTIVE: all_reduce_perf\n" + kTwoHosts + kModernHead + line + kGoodEnd);
    EXPECT_TRUE(table.left_out.empty()) << line;
    EXPECT_TRUE(table.rows.at(0).out_of_place && table.rows[0].in_place) << line;
  }
}

TEST(LogKinds, ColumnsAfterTheLastAreWords) {
  const std::string head =
      "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong algo proto "
      "nchannels\n#  (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n";
  std::string text = printed_row(1048576, 76.26) + printed_row(2097152, 87.02);
  text.replace(text.find('\n'), 1, " Direct SIMPLE 32\n");
  text.replace(text.rfind('\n'), 1, " RING SIMPLE 32\n");
  const MeasuredTable table = only_table(kTwoHosts + head + text + kGoodEnd);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_TRUE(table.rows[0].in_place && table.rows[1].in_place);
  EXPECT_TRUE(table.left_out.empty());
  EXPECT_TRUE(says_of(table, "by its column algo the library took Direct, then RING"));
  EXPECT_EQ(table.forced, ForcedAlgorithm::kNone);
}

TEST(LogKinds, LaunchersLabelEveryPieceOfARow) {
  // srun -l pads from ten tasks on; a row is torn by NCCL's line, its rest has the label too.
  for (const std::string label : {" 0: ", "worker-0 | ", "[pod/x/mpi] ", "launcher-1  "}) {
    const std::string torn = "  1048576 262144 float sum -1hostA:12:34 [0] NCCL INFO Launch mode\n";
    std::string text;
    for (const std::string& line :
         {kTwoHosts.substr(16), kModernHead, torn,
          printed_place(1048576, 126.5) + printed_place(1048576, 122.3) + "\n",
          printed_row(2097152, 165.3)}) {
      std::string rest = line;
      for (std::size_t at = 0; at < rest.size();) {
        const std::size_t end = rest.find('\n', at) + 1;
        text += label + rest.substr(at, end - at);
        at = end;
      }
    }
    const MeasuredTable table = only_table(text);
    ASSERT_EQ(table.rows.size(), 2u) << label;
    EXPECT_NEAR(table.rows[0].out_of_place.value_or(0), 126.5e-6, 1e-9) << label;
    EXPECT_NEAR(table.rows[0].in_place.value_or(0), 122.3e-6, 1e-9) << label;
  }
  // mpiexec -prepend-rank labels each piece that is written.
  const std::string pieces = "[0]   1048576  262144 float sum -1[0]" +
                             printed_place(1048576, 126.5) + "[0]" + printed_place(1048576, 122.3) +
                             "[0]\n";
  const MeasuredTable table = only_table(kTwoHosts + kModernHead + pieces + kGoodEnd);
  EXPECT_NEAR(table.rows.at(0).out_of_place.value_or(0), 126.5e-6, 1e-9);
  EXPECT_NEAR(table.rows[0].in_place.value_or(0), 122.3e-6, 1e-9);
}

TEST(LogKinds, CellsOfCsvAndMarkdown) {
  const std::string csv =
      "size,count,type,redop,root,time,algbw,busbw,#wrong,time,algbw,busbw,#wrong\n"
      "1048576,262144,float,sum,-1,126.5,8.29,8.29,0,122.3,8.57,8.57,0\n"
      "4194304,1048576,float,sum,-1,262.6,15.97,15.97,0,265.8,15.78,15.78,0\n";
  std::string markdown;
  for (const char c : csv) markdown += c == ',' ? " | " : std::string(1, c);
  for (const std::string& text : {csv, markdown}) {
    const MeasuredTable table = only_table(text, "@2x1");
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_NEAR(table.rows[1].in_place.value_or(0), 265.8e-6, 1e-12);
  }
}

// ---------------------------------------------------------------------------------------------
// Rows of several kinds

TEST(LogKinds, TypesAreTablesOfTheirOwn) {
  const std::string text = kTwoHosts + kModernHead + printed_rows() +
                           printed_rows(1.02, "bfloat16 sum -1") +
                           printed_rows(1.4, "f8e4m3 sum -1") + kGoodEnd;
  const MeasuredTable table = only_table(text);
  EXPECT_EQ(table.type, "float");
  EXPECT_EQ(table.rows.size(), 4u);
  EXPECT_TRUE(says_of(table, "read are the rows of float sum; those of bfloat16 sum"));
  EXPECT_TRUE(says_of(table, "those of f8e4m3 sum"));
  EXPECT_TRUE(table.left_out.empty()) << table.left_out.front();
  const auto points = cost::usable_points(table, cost::Place::kOutOfPlace);
  ASSERT_EQ(points.size(), 4u);
  EXPECT_NEAR(points[0].time, (50 + 1048576 / 2e4) * 1e-6, 1e-7);
  EXPECT_EQ(only_table(text, ":f8e4m3").type, "f8e4m3");
  EXPECT_EQ(only_table(text, "@2x1:ring:bfloat16").type, "bfloat16");
  EXPECT_NE(log_refusal(text, ":half").find("of type float"), std::string::npos);
  // Without a float the first stand.
  EXPECT_EQ(only_table(kTwoHosts + kModernHead + printed_rows(1, "half sum -1") +
                       printed_rows(1.1, "bfloat16 sum -1"))
                .type,
            "half");
}

TEST(LogKinds, OperationsAndRootsAreTablesOfTheirOwn) {
  const std::string ops = kTwoHosts + kModernHead + printed_rows(1.3, "float prod -1") +
                          printed_rows(1.2, "float max -1") + printed_rows(1, "float sum -1") +
                          printed_rows(1.1, "float avg -1") + kGoodEnd;
  const MeasuredTable sum = only_table(ops);
  EXPECT_EQ(sum.redop, "sum");
  EXPECT_EQ(sum.rows.size(), 4u);
  EXPECT_TRUE(says_of(sum, "those of float avg"));
  // A broadcast from each root in turn.
  std::string roots = "# COLLECTIVE: broadcast_perf\n" + kTwoHosts + kModernHead;
  for (int root = 0; root < 2; ++root) {
    roots += "  1048576 262144 float none " + std::to_string(root) +
             (root == 0 ? "  100.0 10.49 10.49 0 100.0 10.49 10.49 0\n"
                        : "  200.0 5.24 5.24 0 200.0 5.24 5.24 0\n");
  }
  const MeasuredTable first = only_table(roots);
  EXPECT_EQ(first.root, 0);
  EXPECT_EQ(first.rows.size(), 1u);
  EXPECT_TRUE(says_of(first, "root 1"));
}

// Two runs of different types are no two measurements of one, though each has a head.
TEST(LogKinds, RunsOfSeveralTypesInOneFile) {
  const std::string text = kTwoHosts + kModernHead + printed_rows(1.4, "half sum -1") + kGoodEnd +
                           kTwoHosts + kModernHead + printed_rows(1, "float sum -1") + kGoodEnd;
  EXPECT_EQ(only_table(text).type, "float");
  // What moves nothing is of any kind.
  EXPECT_EQ(only_table(kTwoHosts + kModernHead +
                       " 0 0 float none -1 7.59 0.00 0.00 0 7.52 0.00 0.00 0\n" + printed_rows())
                .rows.size(),
            5u);
}

// A user's own first column: how many nodes each row is of.
TEST(LogKinds, AColumnOfTheUsersOwnMakesTables) {
  const std::string text =
      " p4dn        size         count      type   redop     time   algbw   busbw  error     time  "
      " "
      "algbw   busbw  error\n"
      "              (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  "
      "(GB/s)  (GB/s)\n\n"
      "   1   1073741824     268435456     float     sum   8142.6  131.87  230.77  2e-07   8141.2  "
      "131.89  230.81  2e-07\n"
      "   2   1073741824     268435456     float     sum    35215   30.49   57.17  4e-07    35198  "
      " "
      "30.51   57.20  4e-07\n"
      "   3   1073741824     268435456     float     sum    64782   16.57   31.77  7e-07    64827  "
      " "
      "16.56   31.75  7e-07\n";
  const MeasuredTable two = only_table(text, "@2x8");
  EXPECT_EQ(two.own, "p4dn 2");
  ASSERT_EQ(two.rows.size(), 1u);
  EXPECT_NEAR(two.rows[0].out_of_place.value_or(0), 35215e-6, 1e-9);
  EXPECT_TRUE(says_of(two, "p4dn 1, which is of 8 ranks"));
  EXPECT_NEAR(only_table(text, "@3x8").rows.at(0).out_of_place.value_or(0), 64782e-6, 1e-9);
  EXPECT_NE(log_refusal(text, "@5x8"), "");
  // The same behind the last column.
  std::string behind;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string word = line.substr(0, 5);
    behind += line.substr(std::min<std::size_t>(5, line.size())) + word + "\n";
  }
  EXPECT_NEAR(only_table(behind, "@2x8").rows.at(0).out_of_place.value_or(0), 35215e-6, 1e-9);
  // Without the column nothing tells the rows apart, but their bandwidths do.
  std::string bare;
  std::istringstream again(text);
  for (std::string line; std::getline(again, line);) {
    bare += line.substr(std::min<std::size_t>(5, line.size())) + "\n";
  }
  EXPECT_NE(log_refusal(bare, "@2x8").find("different numbers of ranks"), std::string::npos);
}

TEST(LogKinds, ClocksAndLineNumbersAreNoColumns) {
  std::string stamped, numbered;
  int line = 0;
  std::istringstream lines(kTwoHosts + kModernHead + printed_rows() + printed_rows());
  for (std::string text; std::getline(lines, text); ++line) {
    stamped += "2025-01-01 10:00:" + std::to_string(10 + line) + " " + text + "\n";
    numbered += std::to_string(line) + "  " + text + "\n";
  }
  EXPECT_EQ(only_table(stamped).rows.size(), 8u);
  EXPECT_EQ(only_table(numbered).rows.size(), 8u);
}

// ---------------------------------------------------------------------------------------------
// What NCCL was made to take

TEST(LogKinds, TheAlgorithmThatALogStatesIsItsTables) {
  const std::string run = kTwoHosts + kModernHead + printed_rows() + kGoodEnd;
  const std::pair<const char*, ForcedAlgorithm> cases[] = {
      {"$ mpirun -x NCCL_ALGO=Tree -x NCCL_DEBUG=INFO -np 2 ./all_reduce_perf -b 2M\n",
       ForcedAlgorithm::kTree},
      {"hostA:1:10 [0] NCCL INFO NCCL_ALGO set by environment to Tree.\n", ForcedAlgorithm::kTree},
      {"mpiexec -genv NCCL_ALGO Ring ./build/all_reduce_perf\n", ForcedAlgorithm::kRing},
      {"export NCCL_ALGO=\"ring\"\n", ForcedAlgorithm::kRing},
      {"NCCL_ALGO=RING\n", ForcedAlgorithm::kRing},
      {"NCCL_ALGO=\"ring;allreduce:tree\"\n", ForcedAlgorithm::kTree},
      {"NCCL_ALGO=allgather:ring\n", ForcedAlgorithm::kNone},
      {"NCCL_ALGO=Ring,Tree\n", ForcedAlgorithm::kNone},
      {"mpirun -H a:8,b:8,c:8,d:8,e:8,f:8,g:8 -x NCCL_ALGO=Ring,Tree ./all_reduce_perf\n",
       ForcedAlgorithm::kNone},
      {"NCCL_ALGO=^NVLS\n", ForcedAlgorithm::kNone},
  };
  for (const auto& [line, forced] : cases) {
    const MeasuredTable table = only_table(line + run);
    EXPECT_EQ(table.forced, forced) << line;
    EXPECT_TRUE(says_of(table, "it ran with NCCL_ALGO=")) << line;
  }
  // NCCL's line may come when the first row is begun, and a job's environment at the log's end.
  const std::string late = kTwoHosts + kModernHead +
                           "  1048576 262144 float sum -1hostA:1:2 [0] NCCL INFO NCCL_ALGO set by "
                           "environment to Tree\n" +
                           printed_place(1048576, 126.5) + printed_place(1048576, 122.3) + "\n" +
                           kGoodEnd;
  EXPECT_EQ(only_table(late).forced, ForcedAlgorithm::kTree);
  EXPECT_EQ(only_table(run + "NCCL_ALGO=Ring\n").forced, ForcedAlgorithm::kRing);
  // What the caller says of all logs is for those that say nothing; of one it is as good as it.
  EXPECT_EQ(log_tables("NCCL_ALGO=Ring\n" + run, "", "tree").at(0).forced, ForcedAlgorithm::kRing);
  EXPECT_EQ(only_table("NCCL_ALGO=Ring\n" + run, ":nccl").forced, ForcedAlgorithm::kNone);
  EXPECT_NE(log_refusal("NCCL_ALGO=Ring\n" + run, ":tree").find("NCCL_ALGO=Ring"),
            std::string::npos);
  // What no strategy can ask for is no choice of NCCL's either, unless the caller says so.
  EXPECT_NE(log_refusal("NCCL_ALGO=NVLSTree\n" + run).find(":nccl"), std::string::npos);
  EXPECT_EQ(only_table("NCCL_ALGO=NVLSTree\n" + run, ":nccl").forced, ForcedAlgorithm::kNone);
}

TEST(LogKinds, EachRunHasItsOwnSettings) {
  const std::string run = kTwoHosts + kModernHead + printed_rows();
  const auto tables =
      log_tables("$ mpirun -x NCCL_ALGO=Tree ./all_reduce_perf\n" + run + kGoodEnd +
                 "$ mpirun -x NCCL_ALGO=Ring ./all_reduce_perf\n" + kTwoHosts + kModernHead +
                 printed_rows(1.5) + kGoodEnd + "$ mpirun ./all_reduce_perf\n" + kTwoHosts +
                 kModernHead + printed_rows(0.7) + kGoodEnd);
  ASSERT_EQ(tables.size(), 3u);
  EXPECT_EQ(tables[0].forced, ForcedAlgorithm::kTree);
  EXPECT_EQ(tables[1].forced, ForcedAlgorithm::kRing);
  EXPECT_EQ(tables[2].forced, ForcedAlgorithm::kNone);
  // An export stays.
  const auto exported = log_tables("export NCCL_ALGO=Tree\n$ mpirun ./all_reduce_perf\n" + run +
                                   kGoodEnd + "$ mpirun ./all_reduce_perf\n" + kTwoHosts +
                                   kModernHead + printed_rows() + kGoodEnd);
  ASSERT_EQ(exported.size(), 2u);
  EXPECT_EQ(exported[1].forced, ForcedAlgorithm::kTree);
}

TEST(LogKinds, OtherSettingsAreReportedAndNotMixed) {
  const std::string run = kTwoHosts + kModernHead + printed_rows() + kGoodEnd;
  const MeasuredTable table = only_table(
      "mpirun -x NCCL_PROTO=LL128 -x NCCL_NVLS_ENABLE=0 -x NCCL_DEBUG=INFO ./all_reduce_perf\n" +
      run);
  EXPECT_TRUE(says_of(table, "NCCL_NVLS_ENABLE=0, NCCL_PROTO=LL128"));
  EXPECT_FALSE(says_of(table, "NCCL_DEBUG"));
  const auto calibration = calibration_of({table}, {}, "one");
  EXPECT_NE(calibration.cluster.at("about").get<std::string>().find("NCCL_PROTO=LL128"),
            std::string::npos);
  const auto both = log_tables("NCCL_PROTO=LL mpirun ./all_reduce_perf\n" + run +
                               "NCCL_PROTO=Simple mpirun ./all_reduce_perf\n" + run);
  EXPECT_NE(test::input_error([&] { calibration_of(both, {}, "one"); }).find("NCCL_PROTO=LL"),
            std::string::npos);
}

// ---------------------------------------------------------------------------------------------
// What the reader noticed

TEST(LogKinds, TheReadersNotesReachTheAnswer) {
  const std::string run = kTwoHosts + kModernHead + printed_rows();
  const std::pair<std::string, const char*> cases[] = {
      {run + "hostA: Test NCCL failure common.cu:303 'invalid usage'\n", "the test failed"},
      {run + "hostA: Test HIP failure common.cu:303 'out of memory'\n", "the test failed"},
      {run + "# Out of bounds values : 7 FAILED\n# Avg bus bandwidth : 12.3\n",
       "7 values out of bounds"},
      {run, "ends without an average"},
      {run + kGoodEnd + "# Collective test starting: alltoall_perf\n" + kTwoHosts + kModernHead +
           " 1048576 262144 float none -1 100.0 10.49 5.24 0 101.0 10.38 5.19 N/A\n",
       "alltoall, is not read"},
      {run + "  4194304 1048576 fp6 sum -1 262.6 15.97 15.97 0 265.8 15.78 15.78 0\n" + kGoodEnd,
       "type 'fp6', which is not known"},
  };
  for (const auto& [text, words] : cases) {
    const auto calibration = calibration_of(log_tables(text), {}, "one");
    EXPECT_TRUE(test::any_contains(calibration.warnings, words)) << words;
    const bool failed = std::string(words).find("out of bounds") != std::string::npos ||
                        words == std::string("the test failed");
    EXPECT_EQ(calibration.fitted.at(0).clean, !failed) << words;
  }
  const auto quiet = calibration_of(
      log_tables("# Collective test starting: all_reduce_perf\n" + run + kGoodEnd), {}, "one");
  EXPECT_TRUE(quiet.warnings.empty()) << quiet.warnings.front();
  // Without MPI every process is rank 0 of its own world.
  EXPECT_NE(log_refusal("# Using devices\n# Rank 0 Pid 1 on hostA device 0 [0x00] V100\n"
                        "# Rank 0 Pid 2 on hostB device 0 [0x00] V100\n" +
                        kModernHead + printed_rows(1, "float sum -1", 1))
                .find("MPI=1"),
            std::string::npos);
}

// The report of -J says the same things in other words.
TEST(LogKinds, TheJsonReportPassesTheSameChecks) {
  const auto result = [](const char* type, double time, double alg) {
    return std::string(R"({"size":1048576,"count":)") +
           std::string(type == std::string("half") ? "524288" : "262144") + R"(,"type":")" +
           std::string(type) + R"(","redop":"sum","root":"-1","out_of_place":{"time":)" +
           printed("%f", time) + R"(,"alg_bw":)" + printed("%f", alg) + R"(,"bus_bw":)" +
           printed("%f", alg) + R"(,"nwrong":0}})";
  };
  const auto report = [](const std::string& results) {
    return R"({"args":["./all_reduce_perf"],"env":["NCCL_ALGO=Tree"],"nccl_version":22809,"config":{
      "nthreads":1,"ngpus":1,"devices":[{"rank":0,"group":0,"hostname":"a"},
      {"rank":1,"group":0,"hostname":"b"}]},"results":[)" +
           results + R"(],"errors":["invalid usage"]})";
  };
  const MeasuredTable table =
      only_table(report(result("float", 100, 10.48576) + "," + result("half", 80, 13.1072)));
  EXPECT_EQ(table.type, "float");
  EXPECT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.forced, ForcedAlgorithm::kTree);
  EXPECT_TRUE(table.failed);
  EXPECT_TRUE(says_of(table, "the test failed: \"invalid usage\""));
  EXPECT_NE(log_refusal(report(result("float", 100, 83.9))).find("but size / algbw is"),
            std::string::npos);
}

// Both places of a size are one row; nodes and ranks are as listed.
TEST(LogLists, RcclsListsAreTables) {
  for (const bool json : {true, false}) {
    std::string text = json ? "["
                            : "numCycle,collective,nodes,ranks,ranksPerNode,gpusPerRank,size,"
                              "type,redop,inplace,time,algbw,busbw,#wrong\n";
    for (const long size : {1L << 20, 1L << 24}) {
      for (const int in_place : {0, 1}) {
        if (json && text.size() > 1) text += ",\n";
        text +=
            listed_place(json, size, in_place,
                         (in_place == 0 ? 100e-6 : 110e-6) * static_cast<double>(size) / 1.048576);
      }
    }
    const MeasuredTable table = only_table(text + (json ? "]" : ""));
    EXPECT_EQ(table.test, "all_reduce");
    EXPECT_EQ(table.ranks, 16);
    EXPECT_EQ(table.nodes, 2);
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_NEAR(*table.rows[0].out_of_place, 100e-6, 1e-9);
    EXPECT_NEAR(*table.rows[1].in_place, 16 * 110e-6, 1e-9);
  }
}

// The bench prints no time, and bandwidths in GB/s of 10^9 bytes.
TEST(LogLists, AllReduceBenchIsATable) {
  const std::string text =
      "The average bandwidth of all_reduce over 16 ranks (5 warmups / 20 trials):\n\n"
      "| payload |    busbw   |    algbw   |\n| ------: | ---------: | ---------: |\n"
      "|   64KiB |   0.94GBps |   0.50GBps |\n|    1GiB | 187.50GBps | 100.00GBps |\n";
  const MeasuredTable table = only_table(text, "@2x8");
  EXPECT_EQ(table.test, "all_reduce");
  EXPECT_EQ(table.ranks, 16);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].size, 65536);
  EXPECT_NEAR(*table.rows[1].out_of_place, 1073741824 / 100e9, 1e-9);
}

// Gaudi's hccl_demo prints a rate for each size; the command tells the ranks.
TEST(LogLists, HcclDemosRatesAreRows) {
  const auto one = [](const std::string& arguments, const char* alg) {
    return "[BENCHMARK] hcclAllReduce(" + arguments + ", dtype=float, iterations=100)\n" +
           "[BENCHMARK]     NW Bandwidth   : 187.5 GB/s\n[BENCHMARK]     Algo Bandwidth : " + alg +
           " GB/s\n";
  };
  const std::string rows = one("src!=dst, data_size=33554432, count=8388608", "100.000000") +
                           one("src!=dst, count=268435456", "100.000000");
  for (const std::string command :
       {"python3 run_hccl_demo.py --nranks 16 --ranks_per_node 8 --test all_reduce\n",
        "HCCL_NRANKS=16 HCCL_RANKS_PER_NODE=8 ./hccl_demo\n"}) {
    const MeasuredTable table = only_table(command + rows);
    EXPECT_EQ(table.test, "all_reduce");
    EXPECT_EQ(table.nodes, 2);
    EXPECT_EQ(table.gpus_per_node, 8);
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_NEAR(*table.rows[0].out_of_place, 33554432 / 100e9, 1e-9);
    EXPECT_NEAR(*table.rows[1].out_of_place, 1073741824 / 100e9, 1e-9);
  }
  EXPECT_TRUE(test::contains(log_refusal(rows), "on how many nodes its 16 ranks were"));
}

TEST(LogLists, DeepSpeedsLogIsRefusedByName) {
  EXPECT_TRUE(test::contains(
      log_refusal("Comm. Op   Message Size   Count   Total Latency(ms)   Avg Latency(ms)   "
                  "tput_avg (Gbps)   busbw_avg (Gbps)\nall_reduce\n   25.0 MB   10   41.1   4.11"
                  "   51.0   89.3\n"),
      "is DeepSpeed's log of communication, whose times contain waiting"));
}

}  // namespace
}  // namespace syncline::calibrate
