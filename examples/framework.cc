// A new framework: `my_trainer` has two keys. Its reader turns them into a strategy by the
// framework's own rules; a key that the reader did not ask for is refused.
#include <cstdio>
#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/cost.h"
#include "core/executor.h"
#include "core/metrics.h"
#include "formats/dialect/dialects.h"
#include "formats/input/document.h"
#include "formats/scenario/scenario.h"

using namespace syncline;

static dialect::Reading read(Reader config, const Workload&, const Cluster&, bool) {
  dialect::Reading reading;
  Fusion& fusion = reading.strategy.fusion;
  fusion.rule = Fusion::Rule::kSize;
  fusion.size = config.integer_or("bucket_mb", 32, 1, 4096) * kMiB;
  fusion.close = Fusion::Close::kBefore;  // a bucket never exceeds bucket_mb
  reading.strategy.overlap = !config.boolean_or("sum_at_end", false);
  dialect::note(reading.notes, {{!reading.strategy.overlap,
                                 "sum_at_end: my_trainer sums after the backward pass"}});
  config.finish();
  return reading;
}

// Returns a scenario with one strategy of my_trainer, whose configuration is given.
static std::string scenario_with(const std::string& config) {
  return R"({"name": "example",
    "workload": {"name": "mlp", "batch": 64, "forward_ms": 8, "tensors": [
      {"name": "c.weight", "shape": [4000, 4000], "backward_us": 4000},
      {"name": "b.weight", "shape": [4000, 4000], "backward_us": 4000},
      {"name": "a.weight", "shape": [4000, 4000], "backward_us": 4000}]},
    "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 1,
                "inter": {"latency_us": 10, "bandwidth_gbps": 100}},
    "strategies": [{"name": "mine", "dialect": "my_trainer", "config": )" +
         config + "}]}";
}

int main() {
  std::vector<dialect::Dialect> frameworks = dialect::all_dialects();
  frameworks.push_back({.name = "my_trainer", .summary = "an example", .read = read});
  dialect::hand_in(std::move(frameworks));

  for (const char* config :
       {"{}", R"({"bucket_mb": 128})", R"({"sum_at_end": true})", R"({"bucket_size": 64})"}) {
    std::printf("%-22s  ", config);
    try {
      const Scenario scenario =
          input::parse_scenario(input::document_from_text("example", scenario_with(config)));
      const auto executor = run::make_model_executor({.cluster = scenario.cluster});
      collective::CostCache costs(scenario.cluster);
      const Strategy& strategy = scenario.strategies.front();
      const measure::Metrics metrics =
          measure::evaluate_strategy(scenario, strategy, *executor, costs).metrics;
      std::printf("%.2f ms\n", metrics.step_time * 1e3);
      for (const std::string& note : strategy.notes) std::printf("  note: %s\n", note.c_str());
    } catch (const InputError& error) {
      std::printf("refused\n  %s\n", error.what());
    }
  }
}
