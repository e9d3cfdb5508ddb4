// Reading a scenario of a million tensors, 55 MB of JSON. Goal: under 5 s, and time in proportion
// to the tensors.

#include <benchmark/benchmark.h>

#include <string>

#include "formats/input/document.h"

namespace syncline {
namespace {

std::string scenario_text(std::int64_t tensors) {
  std::string text = R"({"name": "many", "cluster": {"name": "two", "nodes": 2,
      "gpus_per_node": 1, "inter": {"latency_us": 10, "bandwidth_gbps": 10}},
      "strategies": [{"name": "plain"}], "workload": {"name": "many", "tensors": [)";
  for (std::int64_t i = 0; i < tensors; ++i) {
    text += (i == 0 ? "" : ", ") + (R"({"name": "t)" + std::to_string(i)) +
            R"(", "shape": [100], "backward_us": 1})";
  }
  return text + "]}}";
}

void read_tensors(benchmark::State& state) {
  const std::string text = scenario_text(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(input::parse_scenario(input::document_from_text("many", text)));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(read_tensors)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace syncline
