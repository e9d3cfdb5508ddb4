// Prints scenarios that nobody wrote, one a line, for compare_builds.py:
//   syncline_draw_scenarios random COUNT       over everything a strategy can say
//   syncline_draw_scenarios frameworks COUNT   configurations, in turn of each framework
//   syncline_draw_scenarios pairs              every pair of knobs that go together
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "formats/dialect/dialect.h"
#include "tests/support/random_configs.h"
#include "tests/support/random_scenario.h"
#include "tests/support/strategy_pairs.h"

namespace syncline {
namespace {

constexpr int kMaxRanks = 24;

// A product with bias and activation ahead of what computes each gradient.
Json operators_of(const Json& tensors) {
  Json operators = Json::parse(R"json({
    "values": [
      {"name": "x", "bytes": 1200000}, {"name": "w", "bytes": 600000},
      {"name": "product", "bytes": 5000000}, {"name": "b", "bytes": 1200},
      {"name": "sum", "bytes": 5000000}, {"name": "y", "bytes": 5000000}
    ],
    "list": [
      {"kind": "matmul_v2", "inputs": ["x", "w"], "outputs": ["product"],
       "matrix_flops": 3000000000, "columns": 300},
      {"kind": "elementwise_add", "inputs": ["product", "b"], "outputs": ["sum"], "flops": 2000000},
      {"kind": "gelu", "inputs": ["sum"], "outputs": ["y"], "flops": 2000000}
    ]
  })json");
  for (const Json& tensor : tensors) {
    const std::string gradient = tensor["name"].get<std::string>() + "@GRAD";
    operators["values"].push_back({{"name", gradient}, {"bytes", 400000}});
    operators["list"].push_back({{"kind", "matmul_v2_grad"},
                                 {"part", "backward"},
                                 {"inputs", {"y"}},
                                 {"outputs", {gradient}},
                                 {"matrix_flops", 2000000000},
                                 {"columns", 300}});
  }
  return operators;
}

// Four layers on four nodes of four, with operators that can be fused.
Json ground_of_pairs() {
  Json ground = Json::parse(R"json({
    "name": "pairs",
    "workload": {
      "name": "layers", "batch": 4, "forward_ms": 4, "update_ms": 1, "micro_batches": 2,
      "tensors": [
        {"name": "l3.w", "shape": [1000, 64], "backward_us": 400},
        {"name": "l3.b", "shape": [1000], "backward_us": 20},
        {"name": "l2.w", "shape": [500, 300], "backward_us": 900},
        {"name": "l2.b", "shape": [300], "backward_us": 20},
        {"name": "l1.w", "shape": [700, 500], "backward_us": 1500},
        {"name": "l0.w", "shape": [30000, 8], "backward_us": 300}
      ],
      "buffers": [{"name": "mean", "shape": [64]}], "buffer_broadcast_ms": 0.2
    },
    "cluster": {
      "name": "four", "nodes": 4, "gpus_per_node": 4,
      "intra": {"latency_us": 3, "bandwidth_gbps": 400},
      "inter": {"latency_us": 12, "bandwidth_gbps": 10},
      "device": {"name": "V100", "tflops": 14, "memory_gbytes_per_s": 800, "launch_us": 5, "host_sync_us": 10,
                 "overlap_slowdown": 0.1, "overlap_collective_slowdown": 0.2}
    },
    "strategies": []
  })json");
  ground["workload"]["operators"] = operators_of(ground["workload"]["tensors"]);
  return ground;
}

void print(const Json& scenario) { std::cout << scenario.dump() << '\n'; }

int draw(const std::vector<std::string>& words) {
  const std::string what = words.empty() ? "" : words[0];
  const auto count = words.size() > 1 ? std::strtoull(words[1].c_str(), nullptr, 10) : 0;
  if (what == "pairs") {
    for (const Json& each : test::StrategyPairs(ground_of_pairs()).scenarios()) print(each);
    return 0;
  }
  if (what == "random") {
    for (std::uint64_t seed = 1; seed <= count; ++seed)
      print(test::random_small_scenario(seed, kMaxRanks));
    return 0;
  }
  if (what == "frameworks") {
    const std::vector<std::string> names{"pytorch",    "megatron", "deepspeed", "fsdp",
                                         "hf_trainer", "horovod",  "paddle",    "mindspore"};
    for (std::uint64_t seed = 1; seed <= count; ++seed)
      print(test::random_framework_scenario(seed, names[seed % names.size()], kMaxRanks));
    return 0;
  }
  std::cerr << "random COUNT, frameworks COUNT or pairs\n";
  return 2;
}

}  // namespace
}  // namespace syncline

int main(int count, char** words) {
  return syncline::draw(std::vector<std::string>(words + 1, words + count));
}
