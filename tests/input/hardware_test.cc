// Hardware by name: what a word stands for, what may stand beside it, and what is said of a word
// that nobody knows.
#include <gtest/gtest.h>

#include "catalogue/hardware/device.h"
#include "formats/input/document.h"
#include "formats/input/read_cluster.h"
#include "formats/input/read_workload.h"
#include "formats/input/scenario_json.h"
#include "formats/json/reader.h"
#include "studies/warnings/warnings.h"
#include "tests/support/expect.h"
#include "tests/support/text.h"

namespace syncline::input {
namespace {

using test::contains;

Cluster read_named(const Json& json) { return read_cluster(Reader(json, "c.json", "cluster")); }

Json one_gpu(const Json& device) {
  return {{"name", "one"}, {"nodes", 1}, {"gpus_per_node", 1}, {"device", device}};
}

TEST(KnownHardware, AWordIsADeviceWithItsReachedRates) {
  const hardware::KnownDevice& known = *hardware::find_device("h100-sxm");
  const Device device = read_named(one_gpu("h100-sxm")).device;
  EXPECT_EQ(device.name, known.summary);
  EXPECT_DOUBLE_EQ(device.flops, 67e12 * hardware::kReachedFlops);
  EXPECT_NEAR(device.half_flops, 989e12 * hardware::reached_half_flops(90), 1e9);
  EXPECT_DOUBLE_EQ(device.memory, 3350e9 * hardware::kReachedMemory);
  EXPECT_DOUBLE_EQ(device.launch, hardware::kLaunch);
}

TEST(KnownHardware, KeysNextToABaseReplaceIt) {
  const Device device =
      read_named(one_gpu({{"base", "h100-sxm"}, {"launch_us", 8}, {"half_tflops", 500}})).device;
  EXPECT_DOUBLE_EQ(device.launch, 8 * kMicrosecond);
  EXPECT_DOUBLE_EQ(device.half_flops, 500e12);
  EXPECT_DOUBLE_EQ(device.flops, 67e12 * hardware::kReachedFlops);
}

// The share is the user's then, of the rated rates.
TEST(KnownHardware, AnEfficiencyIsOfTheRatedRates) {
  const Device device =
      read_named(one_gpu({{"base", "a100-sxm-40gb"}, {"efficiency", 0.5}})).device;
  EXPECT_DOUBLE_EQ(device.flops, 19.5e12 * 0.5);
  EXPECT_DOUBLE_EQ(device.half_flops, 312e12 * 0.5);
}

TEST(KnownHardware, ANodeIsItsDeviceAndItsLinks) {
  const Cluster cluster = read_named({{"node", "dgx-h100"}, {"nodes", 4}});
  EXPECT_EQ(cluster.name, "dgx-h100");
  EXPECT_EQ(cluster.ranks(), 32);
  ASSERT_EQ(cluster.tiers.size(), 2u);
  EXPECT_DOUBLE_EQ(cluster.tiers[0].bandwidth, 450e9);
  EXPECT_DOUBLE_EQ(cluster.tiers[1].bandwidth, 8 * 400 * kGigabitPerSecond);
  EXPECT_EQ(cluster.tiers[1].nics, 8);
  EXPECT_EQ(cluster.library, Library::kNccl);
  EXPECT_FALSE(cluster.library_given);
  EXPECT_TRUE(contains(cluster.source, "DGX H100 data sheet"));
}

TEST(KnownHardware, EveryKeyOfANodeMayBeOverridden) {
  const Cluster cluster = read_named({{"node", "p4d.24xlarge"},
                                      {"name", "ours"},
                                      {"nodes", 2},
                                      {"gpus_per_node", 4},
                                      {"inter", {{"latency_us", 30}}},
                                      {"nccl", {{"gpu_direct", false}}},
                                      {"device", {{"launch_us", 7}}},
                                      {"collective_overhead_us", 3},
                                      {"library", "links"}});
  EXPECT_EQ(cluster.name, "ours");
  EXPECT_EQ(cluster.gpus_per_node, 4);
  EXPECT_DOUBLE_EQ(cluster.tiers[1].latency, 30 * kMicrosecond);
  EXPECT_DOUBLE_EQ(cluster.tiers[1].bandwidth, 400 * kGigabitPerSecond);
  EXPECT_EQ(cluster.nccl.gpu_direct, false);
  EXPECT_DOUBLE_EQ(cluster.device.launch, 7 * kMicrosecond);
  EXPECT_DOUBLE_EQ(cluster.device.memory, 1555e9 * hardware::kReachedMemory);
  EXPECT_EQ(cluster.library, Library::kLinks);
  const Cluster other =
      read_named({{"node", "dgx-h100"}, {"nodes", 2}, {"device", {{"base", "h200-sxm"}}}});
  EXPECT_DOUBLE_EQ(other.device.memory, 4800e9 * hardware::kReachedMemory);
  const Cluster named = read_named({{"node", "dgx-h100"}, {"nodes", 2}, {"device", "h200-sxm"}});
  EXPECT_DOUBLE_EQ(named.device.memory, other.device.memory);
}

TEST(KnownHardware, EveryNodeAndDeviceIsReadAndComesBack) {
  std::vector<Json> clusters;
  for (const auto& node : hardware::nodes()) {
    clusters.push_back({{"node", node.name}, {"nodes", 3}});
  }
  for (const auto& device : hardware::devices()) clusters.push_back(one_gpu(device.name));
  for (const Json& json : clusters) {
    SCOPED_TRACE(json.dump());
    const Cluster cluster = read_named(json);
    const Json written = cluster_json(cluster, 17);
    EXPECT_EQ(cluster_json(read_named(written), 9), cluster_json(cluster, 9));
    EXPECT_FALSE(written.contains("node"));
    EXPECT_EQ(read_named(written).library, cluster.library);
  }
}

TEST(KnownHardware, UnknownNamesAreRefusedWithTheNearest) {
  const std::vector<std::pair<Json, std::string>> refused{
      {one_gpu("h100-sx"), "c.json: cluster.device: 'h100-sx' is not among the " +
                               std::to_string(hardware::devices().size()) +
                               " known (did you mean 'h100-sxm'?); `syncline list` names them"},
      {one_gpu({{"base", "h100-sx"}}), "cluster.device.base: 'h100-sx'"},
      {{{"node", "dgx-h10"}, {"nodes", 1}}, "did you mean 'dgx-h100'?"},
      {{{"node", "dgx-h100"}}, "cluster.nodes: missing"},
      {{{"node", 7}, {"nodes", 1}}, "cluster.node: found 7"},
      {one_gpu({{"base", 7}}), "cluster.device.base: found 7"},
      {one_gpu(7), "cluster.device: found 7"},
      {{{"node", "dgx-h100"}, {"nodes", 1}, {"intra", 7}}, "cluster.intra"},
      {{{"node", "dgx-h100"}, {"nodes", 1}, {"intra", {{"nic", 7}}}}, "'nics'"}};
  for (const auto& [json, words] : refused) {
    const std::string said = test::input_error([&json = json] { read_named(json); });
    EXPECT_TRUE(words.starts_with("c.json") ? said == words : contains(said, words)) << said;
  }
}

constexpr const char* kScenario = R"json({
  "name": "named", "baseline": "a",
  "workload": {"name": "w", "batch": 2, "operators": {"architecture": "resnet50"}},
  "cluster": {"node": "dgx-h100", "nodes": 2},
  "strategies": [{"name": "a", "dialect": "pytorch", "config": {}}],
  "sweep": {"cluster.node": ["dgx-a100", "dgx-h100"]}
})json";

// The name is a key like others: a sweep may go through it, and change what stands behind it.
TEST(KnownHardware, ASweepGoesThroughNodes) {
  Document document = document_from_text("s.json", kScenario);
  set_key(document, "cluster.node", "dgx-a100");
  const Scenario slow = parse_scenario(document);
  set_key(document, "cluster.node", "dgx-h100");
  const Scenario fast = parse_scenario(document);
  EXPECT_LT(backward_time(fast.workload), backward_time(slow.workload));
  EXPECT_TRUE(fast.workload.rated_times);
  set_key(document, "cluster.inter.latency_us", 50);
  EXPECT_DOUBLE_EQ(parse_scenario(document).cluster.tiers[1].latency, 50 * kMicrosecond);
}

// Rates say nothing of how ranks differ, so that is guessed; recorded times, or the user, do.
TEST(KnownHardware, RanksDifferIfRatesPredictTheComputation) {
  Document document = document_from_text("s.json", kScenario);
  const Jitter guess = parse_scenario(document).cluster.jitter;
  EXPECT_TRUE(guess.guessed);
  EXPECT_EQ(guess.kind, Jitter::Kind::kNormal);
  EXPECT_DOUBLE_EQ(guess.relative, Jitter::kGuess);
  set_key(document, "cluster.jitter", {{"distribution", "none"}});
  EXPECT_EQ(parse_scenario(document).cluster.jitter.kind, Jitter::Kind::kNone);
  set_key(document, "cluster.jitter", {{"relative", 0.1}});
  EXPECT_FALSE(parse_scenario(document).cluster.jitter.guessed);
  document = document_from_text("s.json", kScenario);
  set_key(document, "workload.forward_ms", 10);
  set_key(document, "workload.backward_ms", 20);
  EXPECT_EQ(parse_scenario(document).cluster.jitter.kind, Jitter::Kind::kNone);
}

TEST(KnownHardware, APathLeadsIntoADeviceThatIsNamed) {
  Document document = document_from_text("s.json", kScenario);
  set_key(document, "cluster.device", "a100-sxm-40gb");
  set_key(document, "cluster.device.launch_us", 9);
  const Device device = parse_scenario(document).cluster.device;
  EXPECT_DOUBLE_EQ(device.launch, 9 * kMicrosecond);
  EXPECT_DOUBLE_EQ(device.flops, 19.5e12 * hardware::kReachedFlops);
}

// What is assumed is one warning.
TEST(KnownHardware, AssumptionsAreRemarked) {
  const auto warning = [](const char* key, const Json& value) {
    Document document = document_from_text("s.json", kScenario);
    document.root.erase("sweep");
    set_key(document, key, value);
    const auto lines = measure::warnings_of(document, parse_scenario(document));
    return lines.empty() ? "" : lines.front();
  };
  EXPECT_EQ(warning("cluster.nodes", 2),
            "cluster.node dgx-h100: links as rated, latencies and the reached shares of the "
            "device's rates (0.7 in fp32, 0.66 in half precision, 0.8 of memory) are assumed: give "
            "your own, or measure them (syncline calibrate)");
  EXPECT_EQ(warning("cluster.device", {{"base", "h200-sxm"}, {"efficiency", 0.4}}),
            "cluster.node dgx-h100: links as rated, latencies are assumed: give your own, or "
            "measure them (syncline calibrate)");
}

// FLOPs without a time: gradients in half precision go at the half-precision rate, of which a
// whole model reaches less than its products.
TEST(KnownHardware, TensorsInHalfPrecisionAreEvaluatedAtItsRate) {
  const Json json = Json::parse(R"json({"name": "w", "tensors": [
    {"name": "a", "shape": [8], "dtype": "bf16", "backward_flops": 2e12, "forward_flops": 1e12},
    {"name": "b", "shape": [8], "backward_flops": 2e12, "forward_flops": 1e12}]})json");
  Cluster cluster;
  Device& device = cluster.device;
  device.flops = 1e12;
  device.half_flops = 4e12;
  const Workload workload = read_workload(Reader(json, "w.json", ""), cluster);
  EXPECT_DOUBLE_EQ(workload.tensors[0].backward, 0.5 / hardware::kWholeModel);
  EXPECT_DOUBLE_EQ(workload.tensors[1].backward, 2);
  EXPECT_DOUBLE_EQ(workload.forward, 0.25 / hardware::kWholeModel + 1);
  EXPECT_TRUE(workload.rated_times);
}

}  // namespace
}  // namespace syncline::input
