#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/metrics.h"
#include "core/measure/study_calibration.h"
#include "core/plan/planner.h"
#include "reports/fields.h"
#include "reports/format.h"
#include "reports/grid.h"

namespace syncline::cli {
namespace {

struct BucketsOptions {
  ScenarioOption scenario;
  std::string strategy;
  Output output;
};

// The stream of each bucket's first collective; the compute stream where there is none.
std::vector<plan::StreamId> streams_of(const plan::Plan& plan) {
  std::vector<plan::StreamId> streams(plan.buckets.size(), plan::kComputeStream);
  for (auto op = plan.ops.rbegin(); op != plan.ops.rend(); ++op) {
    const auto* collective = std::get_if<collective::Collective>(&op->work);
    if (collective != nullptr) streams[static_cast<std::size_t>(collective->bucket)] = op->stream;
  }
  return streams;
}

Json as_json(const plan::Plan& plan, const Workload& workload, const std::string& strategy) {
  const auto streams = streams_of(plan);
  Json list = Json::array();
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    const plan::Bucket& bucket = plan.buckets[b];
    Json names = Json::array();
    for (const int index : bucket.tensors) names.push_back(plan::tensor_name(workload, index));
    list.push_back({{"tensors", names},
                    {"bytes", bucket.bytes},
                    {"padded_bytes", bucket.padded_bytes},
                    {"dtype", to_string(bucket.dtype)},
                    {"stream", streams[b]}});
    if (bucket.codec != nullptr) {
      list.back()["codec"] = std::string(bucket.codec->name);
      list.back()["encoded_bytes"] = plan::encoded_bytes(bucket);
    }
  }
  return {{"strategy", strategy},
          {"collectives", reports::exact(measure::collectives_per_step(plan))},
          {"buckets", list}};
}

reports::Grid as_grid(const plan::Plan& plan, const Workload& workload) {
  const auto streams = streams_of(plan);
  reports::Grid grid{{{"bucket"},
                      {"tensors"},
                      {"bytes"},
                      {"padded"},
                      {"dtype", false},
                      {"stream"},
                      {"from", false},
                      {"to", false}},
                     {}};
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    const plan::Bucket& bucket = plan.buckets[b];
    grid.lines.push_back(
        {{std::to_string(b), std::to_string(bucket.tensors.size()),
          reports::bytes_text(static_cast<double>(bucket.bytes)),
          reports::bytes_text(static_cast<double>(bucket.padded_bytes)), to_string(bucket.dtype),
          std::to_string(streams[b]), plan::tensor_name(workload, bucket.tensors.front()),
          plan::tensor_name(workload, bucket.tensors.back())},
         false});
  }
  return grid;
}

reports::CsvTable as_csv(const plan::Plan& plan, const Workload& workload) {
  const auto streams = streams_of(plan);
  reports::CsvTable table{
      {"bucket", "tensors", "bytes", "padded_bytes", "dtype", "stream", "from", "to"}, {}};
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    const plan::Bucket& bucket = plan.buckets[b];
    table.lines.push_back({std::to_string(b), std::to_string(bucket.tensors.size()),
                           std::to_string(bucket.bytes), std::to_string(bucket.padded_bytes),
                           to_string(bucket.dtype), std::to_string(streams[b]),
                           plan::tensor_name(workload, bucket.tensors.front()),
                           plan::tensor_name(workload, bucket.tensors.back())});
  }
  return table;
}

int run(const BucketsOptions& options) {
  const input::Document document = measure::calibrated(read(options.scenario)).document;
  const Scenario scenario = input::parse_scenario(document);
  const Strategy& strategy = chosen_strategy(scenario, options.strategy, document.file);
  const auto point = plan::training_phases(strategy, scenario.training).front().point;
  const plan::Plan plan = plan::make_plan(scenario.workload, scenario.cluster, strategy, point);
  const std::string about = "buckets of '" + reports::one_line(strategy.name) + "', " +
                            reports::collectives_text(measure::collectives_per_step(plan));
  const reports::Answer answer{"buckets",
                               scenario.name,
                               [&] {
                                 return reports::Page{reports::one_line(scenario.name),
                                                      about,
                                                      {as_grid(plan, scenario.workload)}};
                               },
                               [&] { return as_csv(plan, scenario.workload); },
                               [&] { return as_json(plan, scenario.workload, strategy.name); },
                               remarks_here(document, {strategy})};
  print(answer, options.output);
  return 0;
}

}  // namespace

VerbAction add_buckets(CLI::App& app) {
  auto options = std::make_shared<BucketsOptions>();
  auto* verb = app.add_subcommand("buckets", "Print which gradients travel together");
  add_scenario(*verb, options->scenario, "its sweep is ignored");
  add_strategy(*verb, options->strategy, "the first one");
  add_format(*verb, options->output);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
