// Tables that people make of logs, and lines around a table that state nodes and ranks.
#include <gtest/gtest.h>

#include <string>

#include "reports/calibration.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/log_files.h"
#include "tests/support/expect.h"
#include "tests/support/printed.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::calibrate {
namespace {

using cost::MeasuredTable;

std::vector<MeasuredTable> tables_in(const std::string& text, const std::string& ending = "") {
  const test::Scratch scratch;
  test::write_text(scratch.path("x.txt"), text);
  return read_tables({scratch.path("x.txt") + ending}, "nccl");
}

std::string refusal_of(const std::string& text) {
  return test::input_error([&] { (void)tables_in(text); });
}

std::string shape_of(const MeasuredTable& table) {
  return table.test + ", " + std::to_string(table.nodes) + " x " +
         std::to_string(table.gpus_per_node);
}

bool is_noted(const MeasuredTable& table, const std::string& part) {
  return test::any_contains(table.notes, part);
}

// An all-reduce of 8 ranks: 1 MiB in 100 us.
const std::string kTablesRow =
    " 1048576 262144 float sum -1 100.0 10.49 18.35 0 101.0 10.38 18.17 0\n";
const std::string kTablesHead =
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n";
const std::string kTablesEnd = "# Avg bus bandwidth    : 18.2\n";

// Each pair: lines before a table of 8 ranks without devices, and its nodes and GPUs.
TEST(LogTables, TheCommandTellsTheNodes) {
  const std::pair<const char*, const char*> rows[] = {
      {"srun --nodes=4 --ntasks-per-node=2 --label -- all_reduce_perf -g 1", "4 x 2"},
      {"srun -N 2 -n 8 all_reduce_perf -g 1", "2 x 4"},
      {"#SBATCH -N2", "2 x 4"},
      {"mpirun -np 8 -npernode 4 all_reduce_perf -g 1", "2 x 4"},
      {"mpirun -np 8 --map-by ppr:2:node all_reduce_perf -g 1", "4 x 2"},
      {"mpirun -H a:4,b:4 -np 8 all_reduce_perf", "2 x 4"},
      {"mpirun -np 2 -npernode 1 all_reduce_perf -g 4", "2 x 4"},
      {"`all_reduce_perf -b 8 -e 1G -f 2 -g 8`", "1 x 8"},
      {"# nThread 2 nGpus 4 minBytes 8 maxBytes 1048576", "1 x 8"},
      {"### All Reduce - 2 Nodes", "2 x 4"},
      {"on servers of 4 GPUs per node", "2 x 4"},
      {"2 nodes x 4 GPUs/node", "2 x 4"},
      {"2 nodes, 4 GPUs per process, `NCCL_NET=Socket`", "2 x 4"},
      {"2 \u30ce\u30fc\u30c9 p4d, 8 GPUs", "2 x 4"}};
  for (const auto& [line, shape] : rows) {
    const auto tables = tables_in(line + std::string("\n") + kTablesHead + kTablesRow + kTablesEnd);
    EXPECT_EQ(shape_of(tables.at(0)), std::string("all_reduce, ") + shape) << line;
  }
  const auto guessed =
      tables_in("### All Reduce - 2 Nodes\n" + kTablesHead + kTablesRow + kTablesEnd);
  EXPECT_TRUE(is_noted(guessed.at(0), "on 2 nodes by the command or a line before it"));
  // Several numbers, and a number that does not divide the ranks, state none.
  for (const char* line : {"2 nodes of 4 nodes", "3 nodes", "NCCL INFO 2 nodes"}) {
    EXPECT_TRUE(
        test::contains(refusal_of(line + std::string("\n") + kTablesHead + kTablesRow + kTablesEnd),
                       "does not say on how many nodes its 8 ranks were"))
        << line;
  }
  // A list of devices is better evidence.
  const std::string host =
      "#  Rank  0 Group  0 Pid  1 on a device  0 [0x07] X\n"
      "#  Rank  1 Group  0 Pid  1 on a device  1 [0x0a] X\n";
  EXPECT_EQ(shape_of(tables_in("2 nodes\n# Using devices\n" + host + kTablesHead +
                               " 1048576 262144 float sum -1 100.0 10.49 10.49 0 101.0 10.38 "
                               "10.38 0\n" +
                               kTablesEnd)
                         .at(0)),
            "all_reduce, 1 x 2");
}

// A second table of as many ranks is of the same nodes.
TEST(LogTables, TheTableBeforeTellsTheNodes) {
  const std::string gather = " 1048576 32768 float none -1 100.0 10.49 9.18 0 101.0 10.38 9.08 0\n";
  const auto tables =
      tables_in("srun --nodes=4 all_gather_perf\n" + kTablesHead + gather + kTablesEnd +
                "The same with all_reduce_perf:\n" + kTablesHead + kTablesRow + kTablesEnd);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(shape_of(tables[1]), "all_reduce, 4 x 2");
  EXPECT_TRUE(is_noted(tables[1], "as the table before"));
}

// From 2019 to 2020 algbw of all_gather counted the bytes that a rank sends to others.
TEST(LogTables, AllGatherOf2019CountsWhatIsSent) {
  const std::string devices =
      "# Using devices\n#   Rank  0 Pid  1 on a device  0 [0x36] V\n"
      "#   Rank  1 Pid  1 on a device  1 [0x39] V\n#   Rank  2 Pid  1 on a device  2 [0x3a] V\n"
      "#   Rank  3 Pid  1 on a device  3 [0x3b] V\n";
  const std::string head = "# size count type time algbw busbw error time algbw busbw error\n";
  const auto tables = tables_in("all_gather_perf -g 4\n" + devices + head +
                                " 4194304 262144 float 100.0 31.46 31.46 0e+00 101.0 31.15 31.15 "
                                "0e+00\n" +
                                kTablesEnd);
  ASSERT_EQ(tables.at(0).rows.size(), 1U);
  EXPECT_NEAR(tables[0].rows[0].out_of_place.value_or(0), 100e-6, 1e-12);
  EXPECT_EQ(shape_of(tables[0]), "all_gather, 1 x 4");
}

TEST(LogTables, RanksOfOneGpuAreNamed) {
  const auto shared = [](const char* bus) {
    const std::string one = "device  0 [" + std::string(bus) + "] X\n";
    return tables_in("# Using devices\n#  Rank  0 Group  0 Pid  1 on a " + one +
                     "#  Rank  1 Group  0 Pid  2 on a " + one + kTablesHead +
                     " 1048576 262144 float sum -1 100.0 10.49 10.49 0 101.0 10.38 10.38 0\n" +
                     kTablesEnd)
        .at(0);
  };
  EXPECT_TRUE(is_noted(shared("0000:02:00"), "ranks share GPU 0 [0000:02:00] of a"));
  EXPECT_FALSE(is_noted(shared("0x00"), "ranks share GPU"));  // a bus that is not known
}

TEST(LogTables, ATestThatFailedAtOnceIsNamed) {
  EXPECT_TRUE(test::contains(
      refusal_of("# Collective test starting: all_reduce_perf\n" + kTablesHead +
                 "a: Test CUDA failure common.cu:502 'an illegal memory access'\n"),
      "the test failed before its first row, \"a: Test CUDA failure common.cu:502 'an illegal "
      "memory access'\": run it again"));
}

TEST(LogTables, OtherCollectivesSayWhatToRun) {
  EXPECT_TRUE(test::contains(
      refusal_of("scatter_perf -g 8\n" + kTablesHead +
                 " 1048576 32768 float none 0 100.0 10.49 9.18 0 101.0 10.38 9.08 0\n"),
      "found scatter (no collective of gradients); run all_reduce_perf on the same nodes"));
}

TEST(LogTables, SmallSizesShowNoRate) {
  const std::string small = " 8192 2048 float sum -1 10.00 0.82 1.43 0 10.10 0.81 1.42 0\n";
  const std::string command = "all_reduce_perf -g 8\n";
  EXPECT_TRUE(is_noted(tables_in(command + kTablesHead + small + kTablesEnd).at(0),
                       "its largest size is 8192 bytes, which shows latencies and no rate"));
  EXPECT_FALSE(is_noted(tables_in(command + kTablesHead + small + kTablesRow + kTablesEnd).at(0),
                        "no rate"));
  const auto page = [](const std::string& rows) {
    const auto tables = tables_in("mpirun -np 8 -npernode 4 all_reduce_perf -g 1\n" + kTablesHead +
                                  rows + kTablesEnd);
    return test::markdown_of(calibration_of(tables, {}, "log"));
  };
  EXPECT_TRUE(test::says(page(small), "over their own rows, all too small for a rate."));
  EXPECT_TRUE(test::says(page(small + kTablesRow), "of 64 KiB and more; a node sends"));
}

// Units in heads and cells, bold cells, commas in numbers, words after a number.
TEST(LogTables, MarkdownWithUnitsIsRead) {
  for (const char* text :
       {"## AllReduce on 2 nodes, 16 ranks\n"
        "| Size | Time (us) | algBW (GB/s) | busBW (GB/s) |\n|---|---:|---|---|\n"
        "| 16 MB | 1,677.7 | 10.00 | 18.75 |\n| **1 GB** | **107,374** | **10.00** | 18.75 |\n",
        "AllReduce, 2 nodes of 8, `all_reduce_perf`\n\n"
        "| size | time | algbw | busbw |\n|---|---|---|---|\n"
        "| 16 MiB | 1.6777 ms | 10.00 GB/s | 18.75 GB/s |\n"
        "| 1 GiB | 107.374 ms | 10.00 GB/s | 18.75 GB/s <- peak |\n| Avg | - | - | 18.75 |\n",
        "nodes,op,np,size_bytes,time_us,algbw_GBs,busbw_GBs\n"
        "2,all_reduce,16,16777216,1677.7,10.00,18.75\n"
        "2,all_reduce,16,1073741824,107374,10.00,18.75\n",
        "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | nodes\n"
        "16777216 | 1677.7 | 10.0 | 2\n1073741824 | 107374 | 10.0 | 2\n",
        "srun -N2 nccom-test all-reduce\n   size(B)    type    time(us)    algbw(GB/s)\n"
        " 16777216    uint8     1677.7          10.00\n 1073741824  uint8   107374  10.00\n"}) {
    std::string whole = text;
    if (whole.starts_with("data_size")) whole = "mpirun -np 16 all_reduce_test\n" + whole;
    if (whole.starts_with("srun")) whole = "16 ranks\n" + whole;
    const auto tables = tables_in(whole);
    ASSERT_EQ(tables.size(), 1U) << text;
    EXPECT_EQ(shape_of(tables[0]), "all_reduce, 2 x 8") << text;
    ASSERT_EQ(tables[0].rows.size(), 2U) << text;
    EXPECT_EQ(tables[0].rows[0].size, 16777216) << text;
    EXPECT_EQ(tables[0].rows[1].size, 1073741824) << text;
    EXPECT_NEAR(tables[0].rows[0].out_of_place.value_or(0), 1677.7e-6, 1e-9) << text;
    EXPECT_NEAR(tables[0].rows[1].out_of_place.value_or(0), 107374e-6, 1e-7) << text;
  }
}

// MB may be of 1000: size / algbw is the time.
TEST(LogTables, TheTimeTellsTheBaseOfMegabytes) {
  const auto read = [](const char* rows, const char* head) {
    return tables_in("AllReduce, 2 nodes\n" + std::string(head) + rows).at(0);
  };
  const char* timed = "| Size | Time (us) | algbw | busbw |\n";
  EXPECT_EQ(read("| 16 MB | 1600.0 | 10.00 | 15.00 |\n", timed).rows.at(0).size, 16000000);
  EXPECT_EQ(read("| 16 MB | 1677.7 | 10.00 | 15.00 |\n", timed).rows.at(0).size, 16777216);
  const char* in_head = "| Size (MB) | Time (ms) | algbw (GB/s) | busbw (GB/s) |\n";
  EXPECT_EQ(read("| 435.6 | 42.9 | 10.15 | 15.23 |\n", in_head).rows.at(0).size, 435600000);
  const MeasuredTable bare =
      read("| 16 MB | 10.00 | 15.00 |\n", "| Message size | algbw (GB/s) | **busbw (GB/s)** |\n");
  EXPECT_EQ(bare.rows.at(0).size, 16777216);
  EXPECT_TRUE(is_noted(bare, "MB and GB are read as powers of 1024"));
  EXPECT_TRUE(is_noted(bare, "times are size / algbw"));
  EXPECT_EQ(shape_of(bare), "all_reduce, 2 x 2");
}

// A size and a time are a table if the collective is named.
TEST(LogTables, TwoColumnsAreATable) {
  for (const char* rows : {"| Size | Time (us) |\n|---|---|\n| 1 MiB | 50 |\n| 2 MiB | 90 |\n",
                           "size,time_us\n1048576,50\n2097152,90\n"}) {
    const auto tables = tables_in("all_reduce over 2 nodes, 16 ranks\n" + std::string(rows));
    ASSERT_EQ(tables.size(), 1U) << rows;
    EXPECT_EQ(shape_of(tables.front()), "all_reduce, 2 x 8");
    EXPECT_EQ(tables.front().rows.size(), 2U);
    EXPECT_FALSE(refusal_of("our network\n" + std::string(rows)).empty());
  }
}

// The ratio of busbw to algbw is 1.996 for 512 ranks: no other counts fit.
TEST(LogTables, RatesExcludeOtherCounts) {
  const std::string text =
      "all-reduce\n| Size | Time (us) | algbw | busbw |\n| 1 GiB | 15017 | 71.50 | 142.72 |\n";
  EXPECT_EQ(shape_of(tables_in(text, "@64x8").at(0)), "all_reduce, 64 x 8");
  EXPECT_TRUE(test::contains(test::input_error([&] { (void)tables_in(text, "@1x8"); }),
                             "given 1 nodes x 8 GPUs, the table shows 4"));
}

// Words of another column tell rows of one size apart; numbers count repetitions.
TEST(LogTables, WordsOfAColumnMakeTables) {
  const auto read = [](const char* one, const char* other) {
    return tables_in(
        "all_reduce, 2 nodes, 16 ranks\n| Run | Size | Time (us) | algbw | busbw |\n| " +
        std::string(one) + " | 1 MiB | 100.0 | 10.49 | 19.66 |\n| " + other +
        " | 1 MiB | 120.0 | 8.74 | 16.38 |\n");
  };
  const MeasuredTable words = read("**ring**", "`tree`").at(0);
  EXPECT_EQ(words.own, "run ring");
  EXPECT_NEAR(words.rows.at(0).out_of_place.value_or(0), 100e-6, 1e-12);
  EXPECT_TRUE(is_noted(words, "is not read: run tree, after run ring of the same counts"));
  const MeasuredTable numbers = read("1", "2").at(0);
  EXPECT_EQ(numbers.rows.size(), 2U);
  EXPECT_TRUE(test::any_contains(numbers.left_out, "1 size stands in the table of line 2"));
}

TEST(LogTables, RolesOfReStructuredTextAreNoText) {
  std::string text;
  for (const std::string& line :
       {std::string("# nThread 1 nGpus 8 minBytes 8"),
        std::string(
            "# size count type redop root time algbw busbw #wrong time algbw\nbusbw #wrong"),
        kTablesRow.substr(0, kTablesRow.size() - 1)}) {
    text += ":mark:`" + line + "`\n\n";
  }
  const MeasuredTable table = tables_in(text).at(0);
  EXPECT_EQ(shape_of(table), "all_reduce, 1 x 8");
  EXPECT_NEAR(table.rows.at(0).out_of_place.value_or(0), 100e-6, 1e-12);
  EXPECT_NEAR(table.rows.at(0).in_place.value_or(0), 101e-6, 1e-12);
}

// A column of ranks makes tables, and GiB/s under the name of GB/s are told by the time.
TEST(LogTables, ColumnsOfRanksAndRatesOfGibibytes) {
  const std::string rows =
      "op,np,size_bytes,time_us,algbw_GBs,busbw_GBs\nall_reduce,2,1048576,100.0,10.49,10.49\n"
      "all_reduce,4,1048576,200.0,5.24,7.86\n";
  EXPECT_EQ(shape_of(tables_in(rows, "@1x4").at(0)), "all_reduce, 1 x 4");
  EXPECT_NEAR(*tables_in(rows, "@1x4").at(0).rows.at(0).out_of_place, 200e-6, 1e-12);
  const MeasuredTable binary =
      tables_in(
          "2 ranks, all-reduce, 1 node\nsize(B) time(us) algbw(GB/s) busbw(GB/s)\n"
          "33554432 768 40.69 40.69\n")
          .at(0);
  EXPECT_TRUE(is_noted(binary, "its rates are GiB/s"));
  EXPECT_NEAR(*binary.rows.at(0).out_of_place, 768e-6, 1e-12);
}

// Settings hold for the table below them alone.
TEST(LogTables, HeadingsNameSettings) {
  const std::string table =
      "| Size | Time (us) | algbw | busbw |\n|---|---|---|---|\n"
      "| 1 MiB | 100.0 | 10.49 | 15.73 |\n";
  const auto tables = tables_in("all_reduce on 2 nodes\n### ring (NCCL_ALGO=RING)\n" + table +
                                "\n### default\n" + table);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].forced, cost::ForcedAlgorithm::kRing);
  EXPECT_EQ(tables[1].forced, cost::ForcedAlgorithm::kNone);
}

}  // namespace
}  // namespace syncline::calibrate
