// The chain from a measured network to the rows of a framework: who writes PyTorch's, Horovod's or
// Paddle's own configuration on a calibrated cluster gets the times that were measured.
#include "core/collective/library.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "catalogue/hardware/device.h"
#include "core/base/error.h"
#include "formats/dialect/dialect.h"
#include "formats/dialect/write.h"
#include "formats/input/document.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/log_files.h"
#include "tests/support/full_scenario.h"
#include "tests/support/studies.h"

namespace syncline::measure {
namespace {

const std::string kWorkload = SYNCLINE_SOURCE_DIR "/scenarios/workloads/resnet50_v100.json";

Json cluster_of(const std::string& keys) {
  return Json::parse(R"({"name": "c", "nodes": 8, "gpus_per_node": 4,
      "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
      "inter": {"latency_us": 15, "bandwidth_gbps": 25})" +
                     keys + "}");
}

Json chain(const Json& cluster, const Json& strategies) {
  return {
      {"name", "chain"}, {"workload", kWorkload}, {"cluster", cluster}, {"strategies", strategies}};
}

Report report_of(const Json& cluster, const Json& strategies) {
  return test::studied(chain(cluster, strategies));
}

TEST(Library, IsKnownByTheGpusOrByWhatWasMeasured) {
  const auto library = [](const std::string& keys) {
    return test::parsed(chain(cluster_of(keys), Json::array({Json{{"name", "s"}}})))
        .cluster.library;
  };
  EXPECT_EQ(library(""), Library::kLinks);
  EXPECT_EQ(library(R"(, "device": {"name": "NVIDIA A100-SXM4-40GB"})"), Library::kNccl);
  EXPECT_EQ(library(R"(, "device": {"name": "8xH100"})"), Library::kNccl);
  EXPECT_EQ(library(R"(, "device": {"name": "port4 of something"})"), Library::kLinks);
  EXPECT_EQ(library(R"(, "device": {"name": "Ascend 910"})"), Library::kLinks);
  EXPECT_EQ(library(R"(, "device": {"name": "A100"}, "library": "gloo")"), Library::kGloo);
  EXPECT_EQ(library(R"(, "nccl": {"compute_capability": 90})"), Library::kNccl);
}

Seconds default_step(const hardware::KnownNode& node, double bandwidth, double latency) {
  Json cluster{{"name", "n"}, {"node", node.name}, {"nodes", 4}};
  const double nic = node.outside.bandwidth / kGigabitPerSecond;
  cluster["inter"] = {{"bandwidth_gbps", nic * bandwidth},
                      {"nics", node.outside.count},
                      {"latency_us", node.outside.latency / kMicrosecond * latency}};
  const Json ddp{{"name", "d"}, {"dialect", "pytorch"}, {"config", Json::object()}};
  return report_of(cluster, Json::array({ddp})).rows[0].metrics.step_time;
}

// What nobody measured follows the user's figures, on every node that is known by name: no slower
// on a faster network, no more faster than the network, and faster where the step waits for it.
TEST(Library, StepsFollowTheNetworkOnEveryNode) {
  for (const hardware::KnownNode& node : hardware::nodes()) {
    const Seconds computation = default_step(node, 100, 1e-3);
    Seconds before = default_step(node, 1.0 / 64, 1);
    for (double share = 1.2 / 64; share < 2; share *= 1.2) {
      const Seconds now = default_step(node, share, 1);
      EXPECT_LE(now, before * (1 + 1e-9)) << node.name << " at " << share;
      EXPECT_GE(now, before / 1.2 * (1 - 1e-9)) << node.name << " at " << share;
      if (before > 2 * computation) {
        EXPECT_LT(now, before * 0.99) << node.name << " at " << share;
      }
      before = now;
    }
    Seconds sooner = default_step(node, 1, 0.1);
    for (const double latency : {1.0, 10.0, 100.0, 1000.0}) {
      const Seconds later = default_step(node, 1, latency);
      EXPECT_GT(later, sooner) << node.name << " at " << latency;
      EXPECT_LE(later, sooner * 10) << node.name << " at " << latency;
      sooner = later;
    }
  }
}

TEST(Library, MeasuredTimesReachTheRowsOfFrameworks) {
  const std::string folder = SYNCLINE_SOURCE_DIR "/scenarios/measured/nccl-tests/";
  const std::string prefix = "a100-polaris-slingshot-nccl2.18-setup5_allreduce_n00";
  std::vector<cost::MeasuredTable> tables;
  for (const char* counts : {"2x4", "8x4"}) {
    for (auto& table : calibrate::read_nccl_log(folder + prefix + counts + ".txt")) {
      tables.push_back(std::move(table));
    }
  }
  const Json cluster = calibrate::calibration_of(tables, {}, "polaris").cluster;
  for (const char* dialect : {"pytorch", "horovod", "paddle", "mindspore"}) {
    Json strategies = Json::array();
    for (const std::string algorithm : {"", "nccl", "double_binary_tree"}) {
      Json& row = strategies.emplace_back(
          Json{{"name", dialect + algorithm},
               {"dialect", dialect},
               {"config", dialect::least_config(*dialect::find_dialect(dialect))}});
      if (!algorithm.empty()) row["algorithm"] = algorithm;
    }
    const std::vector<Row> rows = report_of(cluster, strategies).rows;
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_NEAR(rows[0].metrics.step_time / rows[1].metrics.step_time, 1, 0.01) << dialect;
    EXPECT_NE(rows[0].metrics.communication, rows[2].metrics.communication) << dialect;
  }
}

// What a dialect's buckets come to, written in our own keys, costs the same.
TEST(Library, OwnKeysAndAFrameworksWordsAreEvaluatedAlike) {
  const Json cluster = cluster_of(R"(, "device": {"name": "A100"})");
  const Report report = report_of(cluster, Json::parse(R"([{"name": "ddp", "dialect": "pytorch",
          "config": {"gradient_as_bucket_view": true}},
          {"name": "own", "fusion": {"rule": "size", "size_mb": 25, "first_size_mb": 1}}])"));
  EXPECT_NEAR(report.rows[0].metrics.step_time / report.rows[1].metrics.step_time, 1, 1e-9);
}

TEST(Library, AnAlgorithmMayBeNextToADialectAndIsChecked) {
  const auto step = [](const char* algorithm, int nodes) {
    Json cluster = cluster_of("");
    cluster["nodes"] = nodes;
    Json row{{"name", "s"}, {"dialect", "pytorch"}, {"config", Json::object()}};
    if (*algorithm != 0) row["algorithm"] = algorithm;
    return report_of(cluster, Json::array({row})).rows[0].metrics.step_time;
  };
  EXPECT_EQ(step("", 8), step("ring", 8));
  EXPECT_NE(step("", 8), step("double_binary_tree", 8));
  EXPECT_THROW(step("rng", 8), InputError);
}

// Every written dialect says a strategy that NCCL runs, and the variable where NCCL needs one.
TEST(Library, StrategiesOfNcclAreWrittenForEveryFramework) {
  const Json root = chain(cluster_of(R"(, "device": {"name": "A100"})"), Json::parse(R"([
      {"name": "nccl", "fusion": {"rule": "size", "size_mb": 25}},
      {"name": "tree", "algorithm": "double_binary_tree", "fusion": {"rule": "size", "size_mb": 25}},
      {"name": "halves", "algorithm": "halving_doubling", "fusion": {"rule": "size", "size_mb": 25}}])"));
  const Scenario scenario = test::parsed(root);
  const auto written = [&](const char* dialect, std::size_t strategy) {
    return *dialect::write_config(*dialect::find_dialect(dialect), scenario.strategies[strategy],
                                  scenario.workload, scenario.cluster);
  };
  for (const char* dialect : {"paddle", "mindspore"}) {
    EXPECT_TRUE(written(dialect, 0).exact) << dialect << written(dialect, 0).difference;
    EXPECT_EQ(written(dialect, 0).setting, "");
    EXPECT_EQ(written(dialect, 0).algorithm, "");
    EXPECT_TRUE(written(dialect, 1).exact) << dialect << written(dialect, 1).difference;
    EXPECT_EQ(written(dialect, 1).setting, "NCCL_ALGO=allreduce:tree");
    EXPECT_EQ(written(dialect, 1).algorithm, "double_binary_tree");
  }
  EXPECT_FALSE(written("paddle", 2).exact);
  EXPECT_NE(written("paddle", 2).difference.find("halving_doubling"), std::string::npos);
}

}  // namespace
}  // namespace syncline::measure
