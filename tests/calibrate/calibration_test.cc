// What a calibration says of its logs: what it leaves out, what it extrapolates, whose GPUs.
#include "studies/calibrate/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "core/collective/nccl.h"
#include "core/cost.h"
#include "formats/input/read_cluster.h"
#include "formats/json/reader.h"
#include "studies/calibrate/log_files.h"
#include "tests/support/expect.h"
#include "tests/support/nccl_tables.h"
#include "tests/support/packed.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::calibrate {
namespace {

// Two GPUs of a node, 16 B to 1 MiB, with these rows in place of the one of 1024 bytes.
std::string log_with(const std::string& rows) {
  std::ostringstream text;
  text
      << "# nThread 1 nGpus 2 minBytes 16 maxBytes 1048576 step: 4(factor)\n"
         "# Using devices\n"
         "#  Rank  0 Group  0 Pid  7 on alpha device  0 [0x07] NVIDIA H100 80GB HBM3\n"
         "#  Rank  1 Group  0 Pid  7 on alpha device  1 [0x0f] NVIDIA H100 80GB HBM3\n"
         "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
         "#   (B)  (elements)  (us)  (GB/s)  (GB/s)  (us)  (GB/s)  (GB/s)\n";
  for (long size = 16; size <= 1048576; size *= 4) {
    if (size == 1024) {
      text << rows;
      continue;
    }
    const double time = 10 + static_cast<double>(size) / 1000;
    const double rate = static_cast<double>(size) / time / 1000;
    text << size << ' ' << size / 4 << " float sum -1";
    for (int place = 0; place < 2; ++place) {
      text << ' ' << time << ' ' << rate << ' ' << rate << " 0";
    }
    text << '\n';
  }
  return text.str();
}

std::vector<std::string> left_out(const std::string& rows) {
  return nccl_log_from_text("x.log", log_with(rows)).at(0).left_out;
}

using test::any_contains;

TEST(LeftOut, TimesThatCannotBeAreNamedWithTheirLine) {
  EXPECT_TRUE(left_out("1024 256 float sum -1 11 0.1 0.1 0 11 0.1 0.1 0\n").empty());
  const std::pair<const char*, const char*> rows[] = {
      {"1024 256 float sum -1 nan 0.1 0.1 0 11 0.1 0.1 0\n", "1024 bytes, out of place: time nan"},
      {"1024 256 float sum -1 11 0.1 0.1 0 -4.5 -nan inf 0\n", "1024 bytes, in place: time -4.5"},
      {"1024 256 float sum -1 0.00 inf inf 0 11 0.1 0.1 0\n", "1024 bytes, out of place: time 0"},
      {"1024 256 float sum -1 11 0.1 0.1 17 11 0.1 0.1 0\n", "out of place: #wrong is 17"},
      {"1024 256 float sum -1 11 0.1 0.1 0\n", "in place: the row is cut off"},
  };
  for (const auto& [row, told] : rows) {
    const auto list = left_out(row);
    ASSERT_EQ(list.size(), 1u) << row;
    EXPECT_NE(list.front().find(told), std::string::npos) << list.front();
    EXPECT_EQ(list.front().rfind("line 10: ", 0), 0u) << list.front();
    // The other rows, and the other time of this one, stay.
    const auto table = nccl_log_from_text("x.log", log_with(row)).at(0);
    EXPECT_EQ(table.rows.size(), 9u) << row;
    EXPECT_EQ(usable_points(table, cost::Place::kOutOfPlace).size() +
                  usable_points(table, cost::Place::kInPlace).size(),
              17u)
        << row;
  }
}

TEST(LeftOut, SizesMeasuredTwiceAreNoted) {
  const std::string row = "1024 256 float sum -1 11 0.1 0.1 0 11 0.1 0.1 0\n";
  const auto list = left_out(row + row + row);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_NE(list.front().find("1 size stands"), std::string::npos) << list.front();
  EXPECT_NE(list.front().find("3 times"), std::string::npos) << list.front();
}

TEST(LeftOut, IsWarnedOfAndTheDeviceIsKept) {
  const auto tables =
      nccl_log_from_text("x.log", log_with("1024 256 float sum -1 nan 0.1 0.1 0 11 0.1 0.1 0\n"));
  const auto calibration = calibration_of(tables, {}, "one");
  EXPECT_TRUE(any_contains(calibration.warnings, "x.log: line 10: 1024 bytes"));
  EXPECT_FALSE(any_contains(calibration.warnings, "no table measured"));
  EXPECT_EQ(calibration.cluster.at("device").at("name"), "NVIDIA H100 80GB HBM3");
}

// Copies and encodings of gradients cost nothing on a device without rates.
TEST(ClusterFromLogs, AKnownDeviceBringsItsRates) {
  const auto cluster_of_logs = [](const std::string& device) {
    std::string log = log_with("");
    const std::string known = "NVIDIA H100 80GB HBM3";
    for (auto at = log.find(known); at != log.npos; at = log.find(known, at + 1)) {
      log.replace(at, known.size(), device);
    }
    return calibration_of(nccl_log_from_text("x.log", log), {}, "one").cluster;
  };
  const Json known = cluster_of_logs("NVIDIA H100 80GB HBM3");
  EXPECT_EQ(known.at("device").at("base"), "h100-sxm");
  const Cluster read = input::read_cluster(Reader(known, "x.json", ""));
  EXPECT_GT(read.device.memory, 2e12);
  EXPECT_EQ(read.device.name, "NVIDIA H100 80GB HBM3");
  // A rate that was measured stands for both formats; the memory's stays.
  LogCalibration calibration;
  calibration.cluster = known;
  DeviceFit fit;
  fit.flops = 3e13;
  set_device(calibration, fit);
  const Cluster measured = input::read_cluster(Reader(calibration.cluster, "x.json", ""));
  EXPECT_DOUBLE_EQ(measured.device.flops, 3e13);
  EXPECT_DOUBLE_EQ(measured.device.half_flops, 0);
  EXPECT_DOUBLE_EQ(measured.device.memory, read.device.memory);
  EXPECT_TRUE(measured.device.name.starts_with(read.device.name + ", calibrated on"));
  const Json unknown = cluster_of_logs("NVIDIA X999 8GB");
  EXPECT_FALSE(unknown.at("device").contains("base"));
}

TEST(LeftOut, CountsThatNoTableMeasuredAreWarnedOf) {
  auto inside = nccl_log_from_text("a.log", log_with("")).at(0);
  auto between = inside;
  between.source = "b.log";
  between.ranks = 0;
  set_shape(between, 4, 1);
  const auto calibration = calibration_of({inside, between}, {}, "both");
  EXPECT_TRUE(any_contains(calibration.warnings,
                           "4 nodes x 2 GPUs, the largest count of each, which no table measured"));
}

// Beside others of its kind Alps is good for large payloads, with the hole that it has on 4 nodes;
// over TCP it is poor throughout.
TEST(BesideOthers, AreRowsOverTheMedianOfSuchNetworks) {
  const auto beside = [](const char* file, const char* node) {
    const auto tables = read_tables({test::kNcclLogs + file});
    LogCalibration calibration = calibration_of(tables, {}, "log");
    set_node(calibration, tables, node);
    return calibration.beside;
  };
  const auto alps = beside("gh200-alps-slingshot-ofi1.9.2_allreduce_n004x4.txt", "alps-gh200");
  ASSERT_EQ(alps.size(), 4U);
  for (const BesideOthers& row : alps) EXPECT_EQ(row.longer > 1, row.slower_than > 0.5);
  EXPECT_LT(alps.back().slower_than, 0.5);
  EXPECT_EQ(alps[2].bytes, Bytes{16} << 20);
  EXPECT_GT(alps[2].slower_than, 0.95);
  const auto tcp = beside("gh200-alps-docs-tcp_allreduce_n002x4.txt", "alps-gh200");
  ASSERT_FALSE(tcp.empty());
  EXPECT_GT(tcp.back().longer, 3);
  EXPECT_GT(tcp.back().slower_than, 0.95);
  EXPECT_THROW(beside("gh200-alps-docs-tcp_allreduce_n002x4.txt", "dgx-h1"), InputError);
}

// Times of 1, 2 and 4 nodes at one leaf, then a fabric of leaves with four nodes and one cable up.
class CalibratedOnAFabric : public ::testing::Test {
 protected:
  static Json calibrated() {
    std::vector<std::string> logs;
    for (const char* nodes : {"1", "2", "4"}) {
      logs.push_back(test::kNcclLogs + "gh200-alps-slingshot-ofi1.9.2_allreduce_n00" + nodes +
                     "x4.txt");
    }
    return calibration_of(read_tables(logs), {}, "alps").cluster;
  }

  // Seconds of an all-reduce of 1 GiB by all ranks.
  static Seconds time(int nodes, const Json& fabric, Bytes bytes = kGiB) {
    static const Json alone = calibrated();
    Json json = alone;
    json["nodes"] = nodes;
    if (!fabric.is_null()) json["fabric"] = fabric;
    const Cluster cluster = input::read_cluster(Reader(json, "test", ""));
    collective::Collective all{collective::CollectiveKind::kAllReduce,
                               nullptr,
                               collective::world_group(cluster.ranks()),
                               bytes / 4,
                               4,
                               0,
                               {}};
    collective::choose_algorithm(all, collective::kNcclName, cluster);
    return collective::CostCache(cluster).time(all);
  }

  static Json leaves(const char* placement) {
    return {{"kind", "leaf_spine"},
            {"nodes", 32},
            {"nodes_per_leaf", 4},
            {"oversubscription", 4},
            {"placement", placement}};
  }
};

// A ring leaves each leaf once where nodes stand side by side, as they are taken to have been
// measured. Dealt out leaf by leaf, all that stand at one send upwards, where there is room for
// one.
TEST_F(CalibratedOnAFabric, TakesLongerOnFullLinks) {
  for (const int nodes : {4, 8}) {  // measured, and worked out from that
    const Seconds alone = time(nodes, nullptr);
    EXPECT_DOUBLE_EQ(time(nodes, leaves("packed")), alone);
    Json two = leaves("spread");
    two["nodes"] = 8;
    EXPECT_NEAR(time(nodes, two) / alone, nodes / 2, 0.15);
    EXPECT_LT(time(nodes, two, 64 * kKiB), 1.5 * time(nodes, nullptr, 64 * kKiB))
        << "latency stays";
  }
}

// A list of nodes is that of the measurements too.
TEST_F(CalibratedOnAFabric, MeasuredTimesAreOfTheNodesThatAreListed) {
  Json listed = leaves("spread");
  listed["placement"] = {0, 4, 1, 5};
  EXPECT_DOUBLE_EQ(time(4, listed), time(4, nullptr));
  listed["load"] = {{"spine", 0.5}};
  EXPECT_NEAR(time(4, listed) / time(4, nullptr), 2, 0.1);
}

TEST_F(CalibratedOnAFabric, TakesLongerOnLinksThatOthersUse) {
  Json busy = leaves("packed");
  const Seconds alone = time(8, busy);
  busy["load"] = {{"spine", 0.75}};
  EXPECT_NEAR(time(8, busy) / alone, 4, 0.3);
  EXPECT_DOUBLE_EQ(time(4, busy), time(4, nullptr)) << "four nodes have a leaf of their own";
}

// The log's GPUs tell the node where only one kind has them; else there is a choice, or nothing.
TEST(BesideOthers, TheLogsGpusTellTheNode) {
  cost::MeasuredTable table;
  const auto kinds = [&table](const char* device, int gpus) {
    table.device = device;
    table.gpus_per_node = gpus;
    return nodes_of_gpus({table});
  };
  EXPECT_EQ(kinds("NVIDIA GH200 120GB", 4), std::vector<std::string>{"alps-gh200"});
  const auto several = kinds("NVIDIA H100 80GB HBM3", 8);
  EXPECT_GT(several.size(), 1U);
  EXPECT_TRUE(std::ranges::count(several, "dgx-h100"));
  EXPECT_TRUE(kinds("NVIDIA GH200 120GB", 3).empty());
  EXPECT_TRUE(kinds("Tesla K80", 2).empty());
  EXPECT_TRUE(kinds("", 8).empty());
  cost::MeasuredTable other = table;
  other.device = "NVIDIA GH200 120GB";
  table.device = "NVIDIA H100 80GB HBM3";
  EXPECT_TRUE(nodes_of_gpus({table, other}).empty()) << "two kinds of GPU are no one node";
}

// On 8 nodes of Alps two sizes are slower than a smaller one, in three runs of two stacks.
TEST(SlowSizes, AreThoseBelowASmallerOnesRate) {
  const auto found = calibration_of(
      read_tables({test::kNcclLogs + "gh200-alps-slingshot-ofi1.9.2_allreduce_n008x4.txt"}), {},
      "alps");
  const auto slow = slow_sizes(found.fitted.front());
  ASSERT_EQ(slow.size(), 2U);
  EXPECT_EQ(slow[0].bytes, Bytes{16} << 20);
  EXPECT_EQ(slow[1].bytes, Bytes{32} << 20);
  ComparedTable table;
  for (const double rate : {1.0, 2.0, 1.6, 1.4, 3.0, 2.0}) {
    const Bytes bytes = kMiB << table.rows.size();
    ComparedRow row;
    row.bytes = bytes;
    row.measured = static_cast<double>(bytes) / rate;
    table.rows.push_back(row);
  }
  const auto by_hand = slow_sizes(table);
  ASSERT_EQ(by_hand.size(), 2U);  // 1.6 of 2 is within a quarter
  EXPECT_EQ(by_hand[0].bytes, 8 * kMiB);
  EXPECT_EQ(by_hand[0].than, 2 * kMiB);
  EXPECT_DOUBLE_EQ(by_hand[0].share, 0.7);
  EXPECT_EQ(by_hand[1].bytes, 32 * kMiB);
  EXPECT_EQ(by_hand[1].than, 16 * kMiB);
}

TEST(Gzip, LogsAreReadAndDamagedOnesReported) {
  const test::Scratch scratch;
  const std::string text = log_with("1024 256 float sum -1 11 0.1 0.1 0 11 0.1 0.1 0\n");
  const std::string path = scratch.path("x.log.gz");
  test::write_packed(path, text);
  EXPECT_EQ(read_tables({path}).at(0).rows.size(), 9u);
  const std::string bytes = test::text_of(path);
  const std::string cut = scratch.path("cut.log.gz");
  test::write_text(cut, bytes.substr(0, bytes.size() / 2));
  const std::string error = test::input_error([&] { read_tables({cut}); });
  EXPECT_TRUE(test::contains(error, "cut.log.gz: gzip: damaged or cut off")) << error;
}

}  // namespace
}  // namespace syncline::calibrate
