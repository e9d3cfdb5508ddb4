// What is written is read back the same: all clusters and workloads that ship, and one of each with
// every key.
#include "formats/input/scenario_json.h"
#include "formats/input/cost_model_json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "formats/input/read_cluster.h"
#include "formats/input/read_workload.h"
#include "formats/json/reader.h"
#include "tests/support/full_scenario.h"

namespace syncline::input {
namespace {

namespace fs = std::filesystem;

constexpr int kAllDigits = 17;

Cluster read(const Json& json) { return read_cluster(Reader(json, "c.json", "")); }

void expect_same(const Device& a, const Device& b) {
  EXPECT_EQ(a.name, b.name);
  for (const auto figure :
       {&Device::flops, &Device::half_flops, &Device::memory, &Device::launch, &Device::kernel_gap,
        &Device::host_sync, &Device::host_link, &Device::host_update,
        &Device::data_parallel_overhead, &Device::data_parallel_slowdown}) {
    EXPECT_DOUBLE_EQ(a.*figure, b.*figure);
  }
}

void expect_same(const NcclHints& a, const NcclHints& b) {
  const auto whole = [](const NcclHints& hints) {
    return std::tuple(hints.cpu, hints.compute_capability, hints.nvlink, hints.nvswitch,
                      hints.gpu_direct, hints.channels, hints.balanced_tree);
  };
  EXPECT_EQ(whole(a), whole(b));
  EXPECT_DOUBLE_EQ(a.channel_intra, b.channel_intra);
  EXPECT_DOUBLE_EQ(a.channel_inter, b.channel_inter);
}

void expect_same(const Cluster& a, const Cluster& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.source, b.source);
  EXPECT_EQ(a.nodes, b.nodes);
  EXPECT_EQ(a.gpus_per_node, b.gpus_per_node);
  ASSERT_EQ(a.tiers.size(), b.tiers.size());
  for (std::size_t t = 0; t < a.tiers.size(); ++t) {
    EXPECT_EQ(a.tiers[t].name, b.tiers[t].name);
    EXPECT_EQ(a.tiers[t].span, b.tiers[t].span);
    EXPECT_DOUBLE_EQ(a.tiers[t].latency, b.tiers[t].latency);
    EXPECT_DOUBLE_EQ(a.tiers[t].bandwidth, b.tiers[t].bandwidth);
    EXPECT_EQ(a.tiers[t].nics, b.tiers[t].nics);
    EXPECT_DOUBLE_EQ(a.tiers[t].flow_cap, b.tiers[t].flow_cap);
    EXPECT_DOUBLE_EQ(a.tiers[t].oversubscription, b.tiers[t].oversubscription);
    EXPECT_DOUBLE_EQ(a.tiers[t].upload_ratio, b.tiers[t].upload_ratio);
  }
  EXPECT_DOUBLE_EQ(a.collective_overhead, b.collective_overhead);
  expect_same(a.device, b.device);
  EXPECT_EQ(a.speeds, b.speeds);
  EXPECT_EQ(a.jitter.kind, b.jitter.kind);
  EXPECT_DOUBLE_EQ(a.jitter.relative, b.jitter.relative);
  expect_same(a.nccl, b.nccl);
  EXPECT_EQ(static_cast<bool>(a.cost_model), static_cast<bool>(b.cost_model));
}

// The measured steps of a level, as its JSON gives them.
cost::StepCurve curve_in(const Json& cluster, const std::string& level) {
  cost::StepCurve curve;
  if (!cluster.contains(level) || !cluster[level].contains("measured_steps_us")) return curve;
  for (const auto& point : cluster[level]["measured_steps_us"]) {
    curve.push_back({point[0].get<double>(), point[1].get<double>() * kMicrosecond});
  }
  return curve;
}

void expect_round_trip(const Json& json) {
  const Cluster cluster = read(json);
  ClusterNotes notes;
  if (json.contains("calibration")) {
    notes.calibration = read_cost_model(Reader(json["calibration"], "c.json", "calibration"));
  }
  for (const Tier& tier : cluster.tiers) notes.curves.push_back(curve_in(json, tier.name));
  const Json written = cluster_json(cluster, kAllDigits, notes);
  SCOPED_TRACE(written.dump());
  expect_same(cluster, read(written));
  // What is written once is written again: nothing creeps in.
  EXPECT_EQ(cluster_json(read(written), 9, notes), cluster_json(cluster, 9, notes));
}

TEST(ClusterJson, EveryShippedClusterComesBack) {
  int clusters = 0;
  for (const auto& entry : fs::recursive_directory_iterator(SYNCLINE_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    const Json json = Json::parse(file);
    const bool alone = json.contains("gpus_per_node") && json.contains("nodes");
    const bool inside = json.contains("cluster") && json["cluster"].is_object() &&
                        json["cluster"].contains("gpus_per_node");
    if (!alone && !inside) continue;
    SCOPED_TRACE(entry.path());
    expect_round_trip(alone ? json : json["cluster"]);
    ++clusters;
  }
  EXPECT_GE(clusters, 5);
}

TEST(ClusterJson, EveryKeyComesBack) { expect_round_trip(test::full_scenario()["cluster"]); }

// Levels may carry nothing: no GPUs beside each other in a node, single nodes below `inter`.
TEST(ClusterJson, LevelsThatJoinASingleUnitMayBeMissing) {
  const Json tier = {{"latency_us", 1.5}, {"bandwidth_gbps", 10}};
  Json json = {{"name", "c"}, {"nodes", 8}, {"gpus_per_node", 1}, {"inter", tier}};
  expect_round_trip(json);
  Json pods = tier;
  pods["name"] = "pods";
  pods["nodes_per_group"] = 1;
  json["upper"] = Json::array({pods});
  expect_round_trip(json);
  json["upper"][0]["nodes_per_group"] = 4;
  pods["name"] = "halls";
  pods["nodes_per_group"] = 8;
  json["upper"].push_back(pods);
  expect_round_trip(json);
  json["gpus_per_node"] = 2;
  json["intra"] = tier;
  expect_round_trip(json);
}

TEST(ClusterJson, MeasuredStepsComeBack) {
  const Json json = {{"name", "c"},
                     {"nodes", 2},
                     {"gpus_per_node", 1},
                     {"inter",
                      {{"latency_us", 10},
                       {"bandwidth_gbps", 8},
                       {"measured_steps_us", {{1000, 11.0}, {2000, 12.0}}}}}};
  ClusterNotes notes;
  notes.curves = {{{1000, 11 * kMicrosecond}, {2000, 12 * kMicrosecond}}};
  const Json written = cluster_json(read(json), kAllDigits, notes);
  EXPECT_EQ(written["inter"]["measured_steps_us"], json["inter"]["measured_steps_us"]);
  EXPECT_TRUE(read(written).cost_model);
}

TEST(ClusterJson, FiguresAreRounded) {
  Cluster cluster;
  cluster.name = "c";
  cluster.collective_overhead = 1.23456e-6;
  cluster.device.flops = 15.6789e12;
  const Json written = cluster_json(cluster, 3);
  EXPECT_EQ(written.dump(),
            R"({"name":"c","nodes":1,"gpus_per_node":1,"collective_overhead_us":1.23,)"
            R"("device":{"tflops":15.7}})");
}

Workload workload_in(const Json& json) {
  Cluster cluster;
  Device& device = cluster.device;
  device.flops = 1e12;
  return read_workload(Reader(json, "w.json", ""), cluster);
}

// Written with all digits and read, it is written as the same bytes again.
Workload expect_workload_back(const Json& json) {
  const Workload workload = workload_in(json);
  const Json written = workload_json(workload, kAllDigits);
  SCOPED_TRACE(written.dump().substr(0, 400));
  const Workload again = workload_in(written);
  EXPECT_EQ(workload_json(again, 9), workload_json(workload, 9));
  EXPECT_NEAR(backward_time(again), backward_time(workload), 1e-12);
  EXPECT_NEAR(again.forward, workload.forward, 1e-12);
  EXPECT_EQ(gradient_bytes(again), gradient_bytes(workload));
  return again;
}

TEST(WorkloadJson, EveryShippedWorkloadOfTensorsComesBack) {
  int workloads = 0;
  for (const auto& entry : fs::directory_iterator(SYNCLINE_SOURCE_DIR "/scenarios/workloads")) {
    std::ifstream file(entry.path());
    const Json json = Json::parse(file);
    if (json.contains("operators")) continue;
    expect_workload_back(json);
    ++workloads;
  }
  EXPECT_GE(workloads, 5);
}

TEST(WorkloadJson, EveryKeyComesBack) {
  const Workload again = expect_workload_back(Json::parse(R"({
    "name": "w", "torch": "2.7", "source": "here", "batch": 3, "micro_batches": 4,
    "buffer_broadcast_ms": 0.125, "forward_ms": 2.5, "update_ms": 1.5, "host_gap_ms": 0.75,
    "copy_kernels_ms": 0.25, "optimizer": "momentum", "time_spread": 0.2,
    "tensors": [
      {"name": "b", "shape": [4, 2], "dtype": "bf16", "registered": 1, "sparse_rows": 3,
       "backward_us": 10, "forward_us": 5, "copy_in_us": 1, "copy_out_us": 2},
      {"name": "a", "shape": [7], "registered": 0, "backward_us": 20, "forward_us": 0,
       "copy_in_us": 3, "copy_out_us": 4}],
    "buffers": [{"name": "m", "shape": [5], "dtype": "fp64"}]})"));
  EXPECT_EQ(again.framework_version, "2.7");
  EXPECT_EQ(again.source, "here");
  EXPECT_TRUE(again.batch_given);
  EXPECT_EQ(samples_of(again), 12);
  EXPECT_DOUBLE_EQ(again.buffer_broadcast, 0.125e-3);
  EXPECT_DOUBLE_EQ(again.update, 1.5e-3);
  EXPECT_DOUBLE_EQ(again.host_gap, 0.75e-3);
  EXPECT_DOUBLE_EQ(again.copy_kernels, 0.25e-3);
  EXPECT_TRUE(again.optimizer_given);
  EXPECT_EQ(again.optimizer_states, 1);
  EXPECT_DOUBLE_EQ(again.time_spread, 0.2);
  ASSERT_EQ(again.tensors.size(), 2U);
  const Tensor& first = again.tensors.front();
  EXPECT_EQ(first.dtype, DType::kBf16);
  EXPECT_EQ(first.registered, 1);
  EXPECT_TRUE(first.sparse);
  EXPECT_EQ(first.sparse_rows, 3);
  EXPECT_DOUBLE_EQ(first.forward, 5e-6);
  EXPECT_TRUE(again.copies_measured);
  EXPECT_DOUBLE_EQ(again.tensors[1].copy_out, 4e-6);
  ASSERT_EQ(again.buffers.size(), 1U);
  EXPECT_EQ(again.buffers[0].dtype, DType::kFp64);
}

}  // namespace
}  // namespace syncline::input
