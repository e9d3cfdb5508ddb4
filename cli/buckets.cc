#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "core/metrics.h"
#include "core/metrics/phases.h"
#include "core/plan.h"
#include "formats/input/document.h"
#include "reports/format.h"
#include "reports/table.h"
#include "studies/rows/fabric_jobs.h"
#include "studies/study/study_calibration.h"

namespace syncline::cli {
namespace {

// Returns the stream of each bucket's first collective; the compute stream if there is none.
std::vector<plan::StreamId> streams_of(const plan::Plan& plan) {
  std::vector<plan::StreamId> streams(plan.buckets.size(), plan::kComputeStream);
  for (auto op = plan.ops.rbegin(); op != plan.ops.rend(); ++op) {
    const auto* collective = std::get_if<collective::Collective>(&op->work);
    if (collective != nullptr && collective->bucket >= 0)
      streams[static_cast<std::size_t>(collective->bucket)] = op->stream;
  }
  return streams;
}

reports::Table buckets_of(const plan::Plan& plan, const Workload& workload) {
  using enum reports::Kind;
  using reports::Column, reports::data_column;
  reports::Table table{reports::columns(
      reports::table_column("bucket", "bucket", kInteger, 0, Column::kNoJson),
      reports::table_column("tensors", "tensors", kInteger, 0, Column::kNoJson),
      data_column("tensors", Column::kJson), reports::table_column("bytes", "bytes", kBytes),
      reports::table_column("padded", "padded_bytes", kBytes),
      reports::table_column("dtype", "dtype"), reports::table_column("stream", "stream", kInteger),
      reports::table_column("from", "from", kText, 0, Column::kNoJson),
      reports::table_column("to", "to", kText, 0, Column::kNoJson),
      data_column("codec", Column::kJson), data_column("encoded_bytes", Column::kJson))};
  const auto streams = streams_of(plan);
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    const plan::Bucket& bucket = plan.buckets[b];
    Json names = Json::array();
    for (const int index : bucket.tensors) names.push_back(plan::tensor_name(workload, index));
    const bool encoded = bucket.codec != nullptr;
    table.add(b, bucket.tensors.size(), names, bucket.bytes, bucket.padded_bytes,
              to_string(bucket.dtype), streams[b], names.front(), names.back(),
              encoded ? reports::Cell(bucket.codec->name) : reports::Cell(),
              encoded ? reports::Cell(plan::encoded_bytes(bucket)) : reports::Cell());
  }
  return table;
}

struct BucketsVerb {
  ScenarioOption scenario;
  std::string strategy;
  Output output;
};

int run(const BucketsVerb& options) {
  const input::Document document = measure::calibrate_document(read(options.scenario)).document;
  const Scenario scenario = input::parse_scenario(document);
  const Strategy& strategy = chosen_strategy(scenario, options.strategy, document.file);
  const auto point = measure::planned_phases(strategy, scenario.training).front().point;
  const plan::Plan plan = plan::make_plan(
      scenario.workload, measure::cluster_left(scenario, strategy), strategy, point);
  const double collectives = measure::collectives_per_step(plan);
  const auto buckets = [&] { return buckets_of(plan, scenario.workload); };
  const std::string about = "buckets of '" + reports::one_line(strategy.name) + "', " +
                            reports::collectives_text(collectives);
  print({"buckets", scenario.name,
         [&] {
           return reports::Page{
               reports::one_line(scenario.name), about, {reports::grid_of(buckets())}};
         },
         buckets,
         [&] {
           return Json{{"strategy", strategy.name},
                       {"collectives", reports::exact(collectives)},
                       {"buckets", reports::json_of(buckets())}};
         },
         warnings_here(document, {strategy})},
        options.output);
  return 0;
}

}  // namespace

VerbAction add_buckets(CLI::App& verb) {
  auto options = std::make_shared<BucketsVerb>();
  add_scenario(verb, options->scenario, "its sweep is ignored");
  add_strategy(verb, options->strategy, "the first");
  add_format(verb, options->output);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
