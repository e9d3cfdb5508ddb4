// Writing down what the program says it assumes changes no prediction: `check` tells the values,
// and a scenario that has them is the same scenario.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "formats/input/document.h"
#include "studies/warnings/warnings.h"
#include "tests/support/studies.h"

namespace syncline::measure {
namespace {

using Assumed = std::vector<std::pair<std::string, Json>>;

void add_channels(const std::string& notes, Assumed& assumed) {
  const std::regex words(
      "compute capability (\\d+)( with NVSwitch)?, (\\d+) channels? of (\\S+) GB/s inside a node "
      "and (\\S+) GB/s across");
  std::smatch said;
  if (!std::regex_search(notes, said, words)) return;
  const std::string nccl = "cluster.nccl.";
  assumed.emplace_back(nccl + "compute_capability", std::stoi(said[1]));
  assumed.emplace_back(nccl + "nvswitch", said[2].matched);
  assumed.emplace_back(nccl + "channels", std::stoi(said[3]));
  assumed.emplace_back(nccl + "channel_intra_gbytes_per_s", std::stod(said[4]));
  assumed.emplace_back(nccl + "channel_inter_gbytes_per_s", std::stod(said[5]));
  assumed.emplace_back(nccl + "cpu", "intel");
  assumed.emplace_back(nccl + "tree", "balanced");
}

void add_overlap(const std::string& notes, Assumed& assumed) {
  const std::regex words("slow each other down by (\\S+) % where they overlap");
  std::smatch said;
  if (!std::regex_search(notes, said, words)) return;
  assumed.emplace_back("cluster.device.overlap_slowdown", std::stod(said[1]) / 100);
}

Assumed assumed_in(const Scenario& scenario) {
  std::string notes;
  for (const std::string& line : warnings_of(scenario)) notes += line + "\n";
  Assumed assumed;
  add_channels(notes, assumed);
  add_overlap(notes, assumed);
  const bool nccl = scenario.cluster.library == Library::kNccl;
  assumed.emplace_back("cluster.library", nccl ? "nccl" : "links");
  // The schema's defaults.
  for (const Tier& tier : scenario.cluster.tiers) {
    if (tier.name != "intra" && tier.name != "inter") continue;
    const std::string at = "cluster." + tier.name + ".";
    if (tier.efficiency == 1) assumed.emplace_back(at + "efficiency", 1);
    assumed.emplace_back(at + "oversubscription", 1);
    assumed.emplace_back(at + "measured", false);
  }
  return assumed;
}

std::vector<Seconds> steps_of(const Scenario& scenario) {
  std::vector<Seconds> steps;
  for (const Strategy& strategy : scenario.strategies) {
    steps.push_back(test::step_time(scenario, strategy));
  }
  return steps;
}

// Nodes by name and links by hand, one GPU a node and eight, sockets and GPUDirect, two nodes.
std::vector<input::Document> scenarios() {
  std::vector<input::Document> all;
  const std::string folder = SYNCLINE_SOURCE_DIR "/scenarios/";
  for (const char* file : {"resnet50_ddp.json", "far_apart.json"}) {
    all.push_back(input::read_document(folder + file));
  }
  for (const char* cluster :
       {R"("node": "p3.16xlarge", "nodes": 2)", R"("node": "dgx-h100", "nodes": 2)",
        R"("node": "p4d.24xlarge", "nodes": 4)",
        R"("nodes": 2, "gpus_per_node": 4, "device": {"base": "a100-sxm-40gb"},
           "intra": {"latency_us": 2, "bandwidth_gbps": 2400},
           "inter": {"latency_us": 15, "bandwidth_gbps": 37.123457})",
        R"("nodes": 3, "gpus_per_node": 2, "device": {"base": "h100-pcie"},
           "intra": {"latency_us": 5, "bandwidth_gbps": 250},
           "inter": {"latency_us": 5, "bandwidth_gbps": 361, "nics": 2})"}) {
    all.push_back(input::document_from_text(
        "assumed.json", R"({"name": "n", "workload": {"name": "w", "batch": 8, "forward_ms": 4,
        "tensors": [{"name": "a", "shape": [4096, 4096], "backward_us": 3000},
                    {"name": "b", "shape": [16, 1024], "backward_us": 10},
                    {"name": "c", "shape": [64, 64], "backward_us": 40},
                    {"name": "d", "shape": [20480, 4096], "backward_us": 9000}]},
      "cluster": {"name": "c", )" +
                            std::string(cluster) + R"(},
      "strategies": [{"name": "one", "algorithm": "nccl", "fusion": {"rule": "one"}},
                     {"name": "each", "algorithm": "nccl"},
                     {"name": "sharded", "algorithm": "nccl", "hierarchy": {"form": "sharded"}}]})"));
  }
  return all;
}

TEST(Assumed, WritingItDownChangesNothing) {
  std::size_t channels = 0, overlaps = 0;
  for (const input::Document& document : scenarios()) {
    const Scenario scenario = input::parse_scenario(document);
    const std::vector<Seconds> before = steps_of(scenario);
    for (const auto& [key, value] : assumed_in(scenario)) {
      input::Document said = document;
      input::set_key(said, key, value);
      EXPECT_EQ(steps_of(input::parse_scenario(said)), before) << key << " = " << value.dump();
      channels += key.ends_with("channels") ? 1 : 0;
      overlaps += key.ends_with("overlap_slowdown") ? 1 : 0;
    }
  }
  EXPECT_EQ(channels, 7U);
  EXPECT_GE(overlaps, 6U);
}

}  // namespace
}  // namespace syncline::measure
