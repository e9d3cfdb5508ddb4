// Every layout that nccl-tests has printed, and every trap of real logs.
#include "studies/calibrate/log_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/base/error.h"
#include "tests/support/corpus.h"
#include "tests/support/expect.h"
#include "tests/support/nccl_tables.h"
#include "tests/support/text.h"

namespace syncline::calibrate {
namespace {

namespace fs = std::filesystem;

std::vector<cost::MeasuredTable> read(const std::string& text, const std::string& name = "x.txt") {
  return nccl_log_from_text(name, text);
}

cost::MeasuredTable one(const std::string& text, const std::string& name = "x.txt") {
  const auto tables = read(text, name);
  EXPECT_EQ(tables.size(), 1U);
  return tables.at(0);
}

// "all_reduce, 2 x 4 of 8": nodes, GPUs of each, ranks.
std::string shape(const cost::MeasuredTable& table) {
  return table.test + ", " + std::to_string(table.nodes) + " x " +
         std::to_string(table.gpus_per_node) + " of " + std::to_string(table.ranks);
}

bool noted(const cost::MeasuredTable& table, const std::string& part) {
  return test::any_contains(table.notes, part);
}

// The pieces of a log of 2.13 and later.
const std::string kDevices =
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid  36600 on      hostA device  0 [0x07] NVIDIA A100-SXM4-40GB\n"
    "#  Rank  1 Group  0 Pid  36601 on      hostA device  1 [0x46] NVIDIA A100-SXM4-40GB\n"
    "#  Rank  2 Group  0 Pid  36602 on      hostB device  0 [0x07] NVIDIA A100-SXM4-40GB\n"
    "#  Rank  3 Group  0 Pid  36603 on      hostB device  1 [0x46] NVIDIA A100-SXM4-40GB\n";
const std::string kHead =
    "#\n"
    "#                                                              out-of-place                "
    "       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " (GB/s)  (GB/s)\n";
const std::string kRows =
    "     1048576        262144     float     sum      -1   100.00   10.49   15.73      0   101.00 "
    "  10.38   15.57      0\n"
    "     2097152        524288     float     sum      -1    20000    0.10    0.16      0   190.00 "
    "  11.04   16.56      0\n";
const std::string kEnd = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.1\n#\n";
const std::string kLog =
    "# Collective test starting: all_reduce_perf\n" + kDevices + kHead + kRows + kEnd;

TEST(NcclLog, AModernTable) {
  const cost::MeasuredTable table = one(kLog);
  EXPECT_EQ(shape(table), "all_reduce, 2 x 2 of 4");
  EXPECT_EQ(table.kind, collective::CollectiveKind::kAllReduce);
  EXPECT_EQ(table.line, 9);
  EXPECT_TRUE(table.notes.empty()) << table.notes.front();
  ASSERT_EQ(table.rows.size(), 2U);
  const cost::MeasuredRow& row = table.rows[0];
  EXPECT_EQ(row.size, 1048576);
  EXPECT_EQ(row.count, 262144);
  EXPECT_EQ(row.type, "float");
  EXPECT_EQ(row.redop, "sum");
  EXPECT_DOUBLE_EQ(*row.out_of_place, 100e-6);
  EXPECT_DOUBLE_EQ(*row.in_place, 101e-6);
  EXPECT_EQ(row.out_of_place_wrong, 0.0);
  EXPECT_DOUBLE_EQ(row.out_of_place_alg, 10.49e9);
}

// The figures of all published files, as the index beside them gives them.
TEST(NcclLog, EveryPublishedFileAgreesWithItsIndex) {
  std::ifstream index(test::kNcclLogs + "INDEX.csv");
  std::string line;
  std::getline(index, line);
  const std::map<std::string, std::string> by_hand = {
      // The index names no collective, the first run had one rank, and two ranks shared a machine.
      {"p100-pcie_g1_n001x2.txt", " 1 1"},
      {"rtx5090-1gpu-2ranks-hostid-socket_allreduce_n002x1.txt", "all_reduce 1 2"},
      // Two racks, 144 GPUs by its text, but busbw / algbw is that of 128 ranks in every row.
      {"gb200-coreweave-nvl72_allreduce_02racks.txt", "all_reduce 0 128"},
  };
  int files = 0;
  while (std::getline(index, line)) {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"') quoted = !quoted;
      if (c == ',' && !quoted) {
        cells.emplace_back();
      } else if (c != '"') {
        cells.back() += c;
      }
    }
    ASSERT_GE(cells.size(), 6U) << line;
    const std::string& file = cells[0];
    const auto tables = read_nccl_log(test::kNcclLogs + file);
    ASSERT_EQ(tables.size(), 1U) << file;
    const cost::MeasuredTable& table = tables[0];
    ++files;
    const std::string found =
        table.test + " " + std::to_string(table.nodes) + " " + std::to_string(table.ranks);
    if (by_hand.contains(file)) {
      EXPECT_EQ(found, by_hand.at(file)) << file;
      continue;
    }
    EXPECT_EQ(table.nodes, std::stoi(cells[2])) << file;
    EXPECT_EQ(table.ranks, std::stoi(cells[3])) << file;
    EXPECT_EQ(table.gpus_per_node, table.ranks / table.nodes) << file;
    std::string collective = cells[1].substr(0, cells[1].find("_perf"));
    if (collective == "see file name / redop column") {
      collective = file.substr(file.find('_') + 1, file.find("_n0") - file.find('_') - 1);
    }
    std::string squeezed;
    for (const char c : table.test) squeezed += c == '_' ? "" : std::string(1, c);
    std::string wanted;
    for (const char c : collective) {
      if (c != '_' && (c < '0' || c > '9')) wanted += c;
    }
    EXPECT_EQ(squeezed, wanted) << file;
    if (!cells[5].empty() && cells[5].find('.') == std::string::npos) {
      // The index leaves rows of size 0 out.
      const auto sized = std::count_if(table.rows.begin(), table.rows.end(),
                                       [](const cost::MeasuredRow& row) { return row.size > 0; });
      EXPECT_EQ(sized, std::stoi(cells[5])) << file;
    }
    // The times are microseconds: size / time is the printed bandwidth.
    for (const cost::MeasuredRow& row : table.rows) {
      if (!row.out_of_place || row.out_of_place_alg < 0.2e9 || *row.out_of_place < 1e-6) continue;
      const double bandwidth = static_cast<double>(row.size) / *row.out_of_place;
      EXPECT_NEAR(bandwidth / row.out_of_place_alg, 1, 0.05) << file << " " << row.size;
    }
  }
  EXPECT_EQ(files, 72);
}

TEST(NcclLog, EachPublishedFileNamesItsSource) {
  for (const auto& entry : fs::directory_iterator(test::kNcclLogs)) {
    if (entry.path().extension() != ".txt") continue;
    std::ifstream in(entry.path());
    std::string first;
    std::getline(in, first);
    EXPECT_EQ(first.rfind("# SOURCE: ", 0), 0U) << entry.path();
  }
}

TEST(NcclLog, TablesAreCleanIfBothMeasurementsAgree) {
  const auto clean = [](const char* file) {
    return cost::is_clean(read_nccl_log(test::kNcclLogs + file).at(0));
  };
  EXPECT_TRUE(clean("a100-echo-ndv4_allreduce_gpu016.txt"));
  EXPECT_TRUE(clean("gh200-alps-slingshot-ofi1.9.2_allreduce_n032x4.txt"));
  EXPECT_FALSE(clean("gh200-alps-docs-tcp_allreduce_n002x4.txt"));
  EXPECT_FALSE(clean("a100pcie-internal_allreduce_small_n001x2.txt"));
}

// Trap 1: without a root column an integer time must stay a time.
TEST(NcclLog, OldLayoutsHaveNoRootAndAnErrorColumn) {
  const cost::MeasuredTable table =
      one("# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20\n"
          "#\n"
          "# Using devices\n"
          "# Rank 0 Pid 63389 on node-000000 device 0 [0x00] A100-SXM4-40GB\n"
          "# Rank 1 Pid 63389 on node-000000 device 1 [0x00] A100-SXM4-40GB\n"
          "#\n"
          "# out-of-place in-place\n"
          "# size count type redop time algbw busbw error time algbw busbw error\n"
          "# (B) (elements) (us) (GB/s) (GB/s) (us)\n"
          " 1073741824 268435456 float sum 12345 86.98 86.98 2e-07 23456 45.78 45.78 N/A\n"
          "# Out of bounds values : 0 OK\n"
          "# Avg bus bandwidth : 40\n");
  EXPECT_EQ(shape(table), "all_reduce, 1 x 2 of 2");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(*table.rows[0].out_of_place, 12345e-6);
  EXPECT_DOUBLE_EQ(*table.rows[0].in_place, 23456e-6);
  // An error is a relative one: no count of wrong elements.
  EXPECT_FALSE(table.rows[0].out_of_place_wrong.has_value());
}

TEST(NcclLog, OldAllGatherHasNoOperationAndOldBroadcastARoot) {
  const cost::MeasuredTable gather =
      one("# COLLECTIVE: allgather\n"
          "# size count type time algbw busbw error time algbw busbw error\n"
          " 4294967296 134217728 float 17016 252.40 220.85 N/A 16474 260.71 228.12 N/A\n");
  EXPECT_EQ(shape(gather), "all_gather, 0 x 0 of 8");
  EXPECT_EQ(gather.rows.at(0).redop, "");
  EXPECT_DOUBLE_EQ(*gather.rows[0].in_place, 16474e-6);

  const cost::MeasuredTable broadcast =
      one("mpirun -np 4 build/broadcast_perf -b 8\n"
          "# size count type root time algbw busbw error time algbw busbw error\n"
          " 1073741824 268435456 float 3 12345 86.98 86.98 0e+00 12346 86.97 86.97 0e+00\n");
  EXPECT_EQ(broadcast.test, "broadcast");
  EXPECT_DOUBLE_EQ(*broadcast.rows.at(0).out_of_place, 12345e-6);
}

// 2018: "bytes N type op", milliseconds, "res".
TEST(NcclLog, TheTestsOf2018PrintMilliseconds) {
  const std::string head =
      "nThread 1 nGpus 2 minBytes 1 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 \n"
      "# NCCL Tests compiled with NCCL 2.4\n"
      "# Using devices\n"
      "# Rank 0 on ncrh device 0 [0x05] GeForce RTX 2080 Ti\n"
      "# Rank 1 on ncrh device 1 [0x06] GeForce RTX 2080 Ti\n"
      "\n"
      "# out-of-place in-place\n"
      "# bytes N type op time algbw busbw res time algbw busbw res\n";
  const std::string large =
      " 33554432 8388608 float sum 2.123 15.80 15.80 2e-06 2.000 16.78 16.78 N/A\n";
  const std::string small = " 4 1 float sum 0.010 0.00 0.00 N/A 0.009 0.00 0.00 N/A\n";
  const cost::MeasuredTable table = one(head + small + large);
  EXPECT_EQ(shape(table), "all_reduce, 1 x 2 of 2");
  EXPECT_NEAR(*table.rows.at(1).out_of_place, 2.123e-3, 1e-12);
  EXPECT_NEAR(*table.rows.at(0).in_place, 9e-6, 1e-12);
  // With nothing but rounded-off bandwidths the head alone decides.
  EXPECT_NEAR(*one(head + small).rows.at(0).out_of_place, 10e-6, 1e-12);
}

// Trap 2.
TEST(NcclLog, UncheckedAndManyWrongResults) {
  const cost::MeasuredTable table =
      one(kHead +
          " 1048576 262144 float sum -1 100.00 10.49 15.73 3.55843e+07 101.00 10.38 15.57 N/A\n"
          " 2097152 524288 float sum -1 200.00 10.49 15.73 N/A 190.00 11.04 16.56 0\n");
  EXPECT_DOUBLE_EQ(*table.rows.at(0).out_of_place_wrong, 3.55843e7);
  EXPECT_FALSE(table.rows[0].in_place_wrong);
  EXPECT_FALSE(table.rows[1].out_of_place_wrong);
  // Wrong results are no measurement; unchecked ones are.
  const auto out = cost::usable_points(table, cost::Place::kOutOfPlace);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].size, 2097152);
  EXPECT_EQ(cost::usable_points(table, cost::Place::kInPlace).size(), 2U);
}

TEST(NcclLog, TheHeadMaySpellWrongWithoutItsHash) {
  const cost::MeasuredTable table =
      one("# size count type redop root time algbw busbw wrong time algbw busbw wrong\n"
          "# (B) (elements) (us) (GB/s) (GB/s) (us)\n"
          " 8388608 2097152 float sum -1 156.9 53.47 100.25 7 167.6 50.06 93.86 0\n");
  EXPECT_EQ(table.rows.at(0).out_of_place_wrong, 7.0);
  EXPECT_EQ(table.ranks, 16);
}

// Trap 3: operations, types, roots; an all-to-all checks its results out of place only.
TEST(NcclLog, OperationsTypesAndRoots) {
  for (const char* type : {"int8", "uint8", "int32", "uint32", "int64", "uint64", "half",
                           "bfloat16", "float", "double", "f8e4m3", "f8e5m2"}) {
    const cost::MeasuredTable table =
        one(kHead + "     1048576        262144  " + type +
            "    none      -1   100.00   10.49    7.87      0   101.00   10.38    7.79      0\n");
    EXPECT_EQ(table.rows.at(0).type, type);
    EXPECT_EQ(table.rows[0].redop, "none");
  }
  const cost::MeasuredTable alltoall =
      one(kHead + " 1048576 65536 float none -1 100.00 10.49 7.87 0 101.00 10.38 7.79 N/A\n");
  EXPECT_EQ(shape(alltoall), "alltoall, 0 x 0 of 4");
  EXPECT_FALSE(alltoall.kind.has_value());
  const cost::MeasuredTable reduce =
      one(kHead + " 1048576 262144 float sum 0 100.00 10.49 10.49 0 101.00 10.38 10.38 0\n");
  EXPECT_EQ(reduce.test, "reduce");
}

// Trap 4: what launchers put ahead of a line.
TEST(NcclLog, PrefixesOfLaunchersChangeNothing) {
  const cost::MeasuredTable plain = one(kLog);
  const auto prefixed = [](const std::string& prefix) {
    std::string text;
    std::istringstream lines(kLog);
    std::string line;
    while (std::getline(lines, line)) text += prefix + line + "\n";
    return text;
  };
  for (const std::string prefix :
       {"[1,0]<stdout>:", "[1,0]<stdout>: ", "Fri Nov 20 12:00:00 2020[1,0]<stdout>:",
        "[prterun-host-1@1,0]<stdout>: ", "0: ", "12: ", "2024-05-01T10:00:00.123456Z ", "    ",
        "> ", "| ", "worker-0  | ", "\t", "\x1b[0m\x1b[32m", "[2025-01-01 10:00:00] "}) {
    const cost::MeasuredTable table = one(prefixed(prefix));
    EXPECT_EQ(shape(table), "all_reduce, 2 x 2 of 4") << prefix;
    ASSERT_EQ(table.rows.size(), 2U) << prefix;
    EXPECT_EQ(table.rows[1].out_of_place, plain.rows[1].out_of_place) << prefix;
    EXPECT_EQ(table.rows[1].in_place, plain.rows[1].in_place) << prefix;
  }
  std::string windows;
  for (const char c : kLog) windows += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_EQ(one(windows).rows.size(), 2U);
  // Comments that lost their hash.
  std::string bald;
  for (const char c : kLog) bald += c == '#' ? ' ' : c;
  EXPECT_EQ(one(bald).ranks, 4);
  EXPECT_EQ(one(bald).rows.size(), 2U);
}

// nccl#1453: NCCL's line begins where the row stands, and the row goes on below.
TEST(NcclLog, NcclLinesGluedIntoRows) {
  const std::string info = "n013:161:161 [0] NCCL INFO 128 Bytes -> Algo 0 proto 0 time 25.214764";
  const std::string lead = "         128            32     float     sum      -1";
  const std::string out = "    25.31    0.01    0.01      0";
  const std::string in = "    24.90    0.01    0.01      0\n";
  for (const std::string& text : {
           lead + info + "\n" + out + in,
           lead + info + "\n" + info + "\n" + out + in,
           lead + "ip-10-0-0-1:7:9 [3] NCCL INFO x\n" + out + info + "\n" + in,
           lead + out + "localhost:1:2 [0] NCCL WARN y\n" + info + "\n" + in,
           lead + "[2025-06-01 10:00:00] " + info + "\n" + out + in,
           info + lead + out + in,
           lead + out + in,
       }) {
    const cost::MeasuredTable table = one(kDevices + kHead + kRows + text + kEnd);
    ASSERT_EQ(table.rows.size(), 3U) << text;
    EXPECT_EQ(table.rows[2].size, 128) << text;
    EXPECT_NEAR(*table.rows[2].out_of_place, 25.31e-6, 1e-12) << text;
    ASSERT_TRUE(table.rows[2].in_place.has_value()) << text;
    EXPECT_NEAR(*table.rows[2].in_place, 24.90e-6, 1e-12) << text;
    EXPECT_EQ(table.rows[2].redop, "sum");
  }
}

TEST(NcclLog, NcclLinesBetweenRowsAreSkipped) {
  const std::string noise =
      "n013:161:161 [0] NCCL INFO Channel 00/02 : 0 1 2 3\n"
      "n013:161:170 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n";
  const cost::MeasuredTable table =
      one(noise + kDevices + noise + kHead + noise + kRows + noise + kEnd);
  EXPECT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.nodes, 2);
}

// Trap 5: several tests in one file.
TEST(NcclLog, SeveralTestsInOneFile) {
  const std::string gather =
      " 1048576 65536 float none -1 100.00 10.49 7.87 0 101.00 10.38 7.79 0\n";
  const std::string second =
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)\n"
      "# Using devices\n"
      "# Rank 0 Group 0 Pid 1 on hostA device 0 [0x07] A100\n"
      "# Rank 1 Group 0 Pid 2 on hostB device 0 [0x07] A100\n";
  const auto full = read(kLog + "# Collective test starting: all_gather_perf\n" + kDevices + kHead +
                         gather + kEnd);
  ASSERT_EQ(full.size(), 2U);
  EXPECT_EQ(full[0].test, "all_reduce");
  EXPECT_EQ(shape(full[1]), "all_gather, 2 x 2 of 4");
  EXPECT_GT(full[1].line, full[0].line);

  // Without a word in between: the devices are still those, the collective is told by its columns.
  const auto bare = read(kLog + kHead + gather + kEnd);
  ASSERT_EQ(bare.size(), 2U);
  EXPECT_EQ(shape(bare[1]), "all_gather, 2 x 2 of 4");

  // A name that its columns would not contradict counts less than they do, too.
  const std::string to_all =
      " 1048576 65536 float none -1 100.00 10.49 7.87 0 101.00 10.38 7.79 N/A\n";
  const auto swapped = read("# Collective test starting: alltoall_perf\n" + kDevices + kHead +
                            to_all + kEnd + kHead + gather + kEnd);
  ASSERT_EQ(swapped.size(), 2U);
  EXPECT_EQ(swapped[0].test, "alltoall");
  EXPECT_EQ(swapped[1].test, "all_gather");

  // Other devices replace the first ones.
  const auto other =
      read(kLog + second + kHead +
           " 1048576 262144 float sum -1 100.00 10.49 10.49 0 101.00 10.38 10.38 0\n" + kEnd);
  ASSERT_EQ(other.size(), 2U);
  EXPECT_EQ(shape(other[1]), "all_reduce, 2 x 1 of 2");
}

TEST(NcclLog, AbridgedAndCutOffLogs) {
  const cost::MeasuredTable abridged = one(kHead + kRows + "...\n" + kRows);
  EXPECT_EQ(abridged.rows.size(), 4U);
  EXPECT_TRUE(noted(abridged, "without an average"));

  // Cut anywhere, no number comes out that was not there whole.
  const cost::MeasuredTable whole = one(kLog);
  const std::size_t begin = kLog.find("     2097152");
  for (std::size_t length = begin; length < kLog.size(); ++length) {
    const cost::MeasuredTable table = one(kLog.substr(0, length));
    ASSERT_GE(table.rows.size(), 1U);
    if (table.rows.size() == 1) continue;
    EXPECT_EQ(table.rows[1].out_of_place, whole.rows[1].out_of_place) << length;
    if (table.rows[1].in_place) {
      EXPECT_EQ(table.rows[1].in_place, whole.rows[1].in_place) << length;
    }
  }
  // No head at all.
  const cost::MeasuredTable headless = one(kRows);
  EXPECT_TRUE(noted(headless, "no head"));
  EXPECT_EQ(headless.rows.at(1).out_of_place, whole.rows[1].out_of_place);
  EXPECT_EQ(headless.ranks, 4);
}

TEST(NcclLog, AListOfDevicesThatIsCutOff) {
  // One process with many GPUs: the list ends in dots. 2 x 15/16 is the ratio of 16 ranks.
  const std::string row =
      " 1073741824 268435456 float sum -1 4000.0 268.44 503.32 0 4000.0 268.44 503.32 0\n";
  const cost::MeasuredTable cut =
      one("# Using devices\n"
          "# Rank 0 Group 0 Pid 1 on hostA device 0 [0x07] A100\n"
          "# Rank 1 Group 0 Pid 1 on hostA devi...\n" +
          kHead + row);
  EXPECT_EQ(shape(cut), "all_reduce, 0 x 0 of 16");
  // Only the last rank was kept: as many ranks, but the nodes are unknown.
  const cost::MeasuredTable last =
      one("#  Rank 15 Group  0 Pid 1 on hostZ device  3 [0x07] A100\n" + kHead + row);
  EXPECT_EQ(shape(last), "all_reduce, 0 x 0 of 16");
}

// Trap 6.
TEST(NcclLog, SizesOfZeroRepeatedAndOddOnes) {
  const std::string zero = " 0 0 float none -1 7.59 0.00 0.00 0 7.52 0.00 0.00 0\n";
  const auto sized = [](const char* time) {
    return std::string("    33553920       8388480     float     sum      -1   ") + time +
           "  100.00  150.00      0   300.00  100.00  150.00      0\n";
  };
  const cost::MeasuredTable table =
      one("# Reducing maxBytes to 26549638485 due to memory limitation\n" + kHead + zero + zero +
          sized("310.00") + sized("330.00") + sized("350.00"));
  EXPECT_EQ(table.rows.size(), 5U);
  const auto points = cost::usable_points(table, cost::Place::kOutOfPlace);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].size, 33553920);
  EXPECT_NEAR(points[0].time, 330e-6, 1e-12);
}

// Trap 7: wrappers hide the other devices.
TEST(NcclLog, TheDeviceDoesNotDistinguishRanks) {
  std::string text = "# Using devices\n";
  for (int r = 0; r < 4; ++r) {
    text += "#  Rank  " + std::to_string(r) + " Group  0 Pid " + std::to_string(r) +
            " on  nid005583 device  0 [0x01] NVIDIA GH200 120GB\n";
  }
  const cost::MeasuredTable table = one(text + kHead + kRows);
  EXPECT_EQ(shape(table), "all_reduce, 1 x 4 of 4");
}

TEST(NcclLog, ASplitWorldIsItsFirstCommunicator) {
  std::string text = "# Using devices\n";
  for (int r = 0; r < 8; ++r) {
    text += "#  Rank  " + std::to_string(r) + " Group  " + std::to_string(r % 2) +
            " Pid 7 on host" + std::to_string(r / 4) + " device  0 [0x01] H100\n";
  }
  const cost::MeasuredTable table = one(text + kHead + kRows);
  EXPECT_EQ(shape(table), "all_reduce, 2 x 2 of 4");
  EXPECT_TRUE(noted(table, "split"));
}

TEST(NcclLog, VersionsInEverySpelling) {
  EXPECT_EQ(one("NCCL version 2.9.9+cuda11.2\n" + kLog).nccl_version, "2.9.9+cuda11.2");
  EXPECT_EQ(one("# nccl-tests version 2.17.8 nccl-headers=22902 nccl-library=22902\n" + kLog)
                .nccl_version,
            "2.29.2");
  EXPECT_EQ(one("# NCCL: 2.23.4-1 + aws\n" + kLog).nccl_version, "2.23.4");
  EXPECT_EQ(one("# NCCL: unknown\n" + kLog).nccl_version, "");
}

TEST(NcclLog, TimestampsAndPerIterationColumns) {
  const cost::MeasuredTable stamped =
      one("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong timestamp\n"
          "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s) %Y-%m-%d %H:%M:%S\n"
          " 1048576 262144 float sum -1 100.00 10.49 15.73 0 101.00 10.38 15.57 0 2025-10-28 "
          "12:00:00\n");
  EXPECT_NEAR(*stamped.rows.at(0).in_place, 101e-6, 1e-12);
  const cost::MeasuredTable detailed =
      one("# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw "
          "busbw #wrong i_min i_max i_p99 i_cv%\n"
          "# (B) (elements) (us) (GB/s) (GB/s)\n"
          " 1048576 262144 float sum -1 100.00 10.49 15.73 0 90.00 120.00 119.00 5.00 101.00 10.38 "
          "15.57 3 91.00 121.00 120.00 6.00\n");
  EXPECT_NEAR(*detailed.rows.at(0).in_place, 101e-6, 1e-12);
  EXPECT_EQ(detailed.rows[0].in_place_wrong, 3.0);
  EXPECT_EQ(detailed.rows[0].out_of_place_wrong, 0.0);
}

TEST(NcclLog, OnlyInPlaceTimesLeaveABlank) {
  const cost::MeasuredTable table =
      one(kHead + "     1048576        262144     float     sum      -1" + std::string(32, ' ') +
          "   101.00   10.38   15.57      0\n");
  EXPECT_FALSE(table.rows.at(0).out_of_place.has_value());
  EXPECT_NEAR(*table.rows[0].in_place, 101e-6, 1e-12);
}

TEST(NcclLog, TimesOfTheHostAreNoTimesOfCollectives) {
  const cost::MeasuredTable table =
      one("# size count type redop root cputime algbw busbw #wrong cputime algbw busbw #wrong\n" +
          kRows);
  EXPECT_FALSE(table.rows.at(0).out_of_place.has_value());
  EXPECT_TRUE(noted(table, "host's"));
}

TEST(NcclLog, ExponentsInTimes) {
  const cost::MeasuredTable table = one(
      kHead + " 68719476736 17179869184 float sum -1 1.2e+07 5.73 8.59 0 1.2e+07 5.73 8.59 0\n");
  EXPECT_NEAR(*table.rows.at(0).out_of_place, 12, 1e-9);
}

TEST(NcclLog, StatedSettingsAreCheckedAgainstTheColumns) {
  // The name of the file says one thing, the columns another.
  const cost::MeasuredTable table =
      one(kHead + " 1048576 65536 float none -1 100.00 10.49 7.87 0 101.00 10.38 7.79 0\n",
          "my_allreduce.log");
  EXPECT_EQ(table.test, "all_gather");
  const cost::MeasuredTable liar =
      one("# COLLECTIVE: all_reduce_perf\n# GPUS: 7\n# NODES: 3\n" + kHead + kRows);
  EXPECT_EQ(shape(liar), "all_reduce, 0 x 0 of 4");
  EXPECT_TRUE(noted(liar, "7 GPUs"));
  // Small bandwidths leave the ranks open.
  const cost::MeasuredTable open =
      one("# COLLECTIVE: all_reduce_perf\n" + kHead +
          " 1048576 262144 float sum -1 6000.0 0.17 0.33 0 6000.0 0.17 0.33 0\n");
  EXPECT_EQ(open.ranks, 0);
  EXPECT_TRUE(noted(open, "open"));
}

TEST(NcclLog, TheCallerKnowsBetter) {
  cost::MeasuredTable table = one("# COLLECTIVE: all_reduce_perf\n" + kHead + kRows);
  EXPECT_EQ(table.nodes, 0);
  cost::set_shape(table, 2, 2);
  EXPECT_EQ(table.nodes, 2);
  EXPECT_THROW(cost::set_shape(table, 3, 2), InputError);
  EXPECT_THROW(cost::set_shape(table, 0, 4), InputError);
}

TEST(NcclLog, WithoutATableTheErrorNamesTheSearchedForms) {
  for (const std::string& text : std::vector<std::string>{
           "", "hello\n", kDevices + kHead + kEnd, "{}", R"({"results": 3})", R"({"results": []})",
           "{ not json", std::string(1, '\0'), kHead + "  1048576  262144  float  sum  -1\n"}) {
    const std::string message = test::input_error([&] { read(text); });
    EXPECT_EQ(message.rfind("x.txt: ", 0), 0U) << text;
    EXPECT_NE(message.find("looked for"), std::string::npos) << text;
  }
  EXPECT_THROW(read_nccl_log("/nowhere/x.txt"), InputError);
}

// ---------------------------------------------------------------------------------------------
// -J

const std::string kReport = R"({"version":2,"start_time":"2025-11-01 10:00:00",
"args":["./build/all_gather_perf","-b","8","-J","x.json"],"env":["A={\"[","B=}"],
"nccl_version":22809,"config":{"nthreads":1,"ngpus":2,"minimum_bytes":8,"maximum_bytes":1024,
"step_factor":2,"warmup_iters":1,"iterations":20,"aggregated_iterations":1,"validation":1,"graph":0,
"blocking_collectives":"false","devices":[
{"rank":0,"group":0,"pid":1,"hostname":"a","device":0,"device_hex":"0000:07:00","device_info":"H100"},
{"rank":2,"group":0,"pid":2,"hostname":"b","device":0,"device_hex":"0000:07:00","device_info":"H100"}]},
"results":[
{"size":1024,"count":64,"type":"float","redop":"none","root":"    -1",
"out_of_place":{"time":10.5,"alg_bw":0.097524,"bus_bw":0.073143,"nwrong":0.000000},
"in_place":{"time":10.25,"alg_bw":0.099902,"bus_bw":0.074927,"nwrong":null},
"actual_iterations":20,"experiment_name":"all_gather_perf"},
{"size":2048,"count":128,"type":"float","redop":"none","root":"    -1",
"out_of_place":null,
"in_place":{"time":"nan","alg_bw":0.2,"bus_bw":0.15,"nwrong":4.000000},
"actual_iterations":20,"experiment_name":"all_gather_perf"}],
"out_of_bounds":{"count":4,"okay":"false"},"average_bus_bandwidth":{"bandwidth":0.07,"okay":"unchecked"},
"errors":[],"end_time":"2025-11-01 10:00:01"})";

TEST(NcclLog, TheJsonReport) {
  const cost::MeasuredTable table = one(kReport, "x.json");
  EXPECT_EQ(table.nccl_version, "2.28.9");
  // One device is listed for each process; the process has two.
  EXPECT_EQ(shape(table), "all_gather, 2 x 2 of 4");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_NEAR(*table.rows[0].out_of_place, 10.5e-6, 1e-12);
  EXPECT_EQ(table.rows[0].out_of_place_wrong, 0.0);
  EXPECT_FALSE(table.rows[0].in_place_wrong);
  EXPECT_FALSE(table.rows[1].out_of_place);
  EXPECT_FALSE(table.rows[1].in_place);
  EXPECT_TRUE(noted(table, "4 values out of bounds"));
}

TEST(NcclLog, AJsonReportThatIsCutOff) {
  const std::size_t second = kReport.find("{\"size\":2048");
  const std::size_t first_end = kReport.rfind('}', second) + 1;
  for (std::size_t length = first_end; length < second + 60; ++length) {
    const cost::MeasuredTable table = one(kReport.substr(0, length), "x.json");
    ASSERT_EQ(table.rows.size(), 1U) << length;
    EXPECT_TRUE(noted(table, "cut off"));
    EXPECT_EQ(table.ranks, 4);
  }
  for (std::size_t length = 1; length < first_end; ++length) {
    EXPECT_THROW(read(kReport.substr(0, length)), InputError) << length;
  }
}

// Any prefix of any published file is read or refused, never worse.
TEST(NcclLog, PrefixesOfAFileNeverFailOtherwise) {
  std::ifstream in(test::kNcclLogs + "a100-echo-ndv4_allreduce_gpu016.txt");
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  std::size_t rows = 0;
  for (std::size_t length = 0; length <= text.size(); length += 13) {
    try {
      rows = std::max(rows, one(text.substr(0, length)).rows.size());
    } catch (const InputError&) {
    }
  }
  EXPECT_GE(rows, 24U);
}

// What the fuzzer found worth keeping, read by every build.
TEST(NcclLog, EveryInputOfTheCorpusIsReadOrRefused) {
  const auto replayed = test::replay_corpus("nccl_log", [](const std::string& text) {
    for (const cost::MeasuredTable& table : read(text, "corpus")) {
      EXPECT_FALSE(table.rows.empty());
      EXPECT_GE(table.ranks, 0);
      for (const auto place : {cost::Place::kOutOfPlace, cost::Place::kInPlace}) {
        for (const cost::MeasuredPoint& point : cost::usable_points(table, place)) {
          EXPECT_GT(point.size, 0);
          EXPECT_GT(point.time, 0);
        }
      }
      cost::is_clean(table);
    }
  });
  EXPECT_GT(replayed.read, 10);
  EXPECT_GT(replayed.refused, 5);
}

}  // namespace
}  // namespace syncline::calibrate
