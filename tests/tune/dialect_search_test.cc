// What a framework cannot say is searched among the configurations that its own row lists.
#include "core/tune/dialect_search.h"

#include <gtest/gtest.h>

#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/price_strategy.h"
#include "core/run/model_executor.h"

namespace syncline::tune {
namespace {

// A framework that nobody has heard of: buckets closed by a size in bytes, before they exceed it.
dialect::Reading read(Reader config, const Workload&, const Cluster&, bool) {
  dialect::Reading reading;
  reading.strategy.fusion.rule = Fusion::Rule::kSize;
  reading.strategy.fusion.close = Fusion::Close::kBefore;
  reading.strategy.fusion.size = config.integer_or("bucket", 1, 0, kGiB);
  config.finish();
  return reading;
}

std::vector<Json> candidates(const Strategy&, const Workload&, const Cluster&,
                             const dialect::Partitions& partitions) {
  Fusion rule;
  rule.rule = Fusion::Rule::kSize;
  rule.close = Fusion::Close::kBefore;
  std::vector<Json> configs;
  for (const Bytes size : partitions.sizes(rule)) {
    Json config{{"bucket", size}};
    configs.push_back(std::move(config));
  }
  return configs;
}

TEST(DialectSearch, ARowListsWhatIsTried) {
  const Scenario scenario =
      input::parse_scenario(input::document_from_text("search", R"({"name": "search",
      "workload": ")" SYNCLINE_SOURCE_DIR R"(/scenarios/workloads/resnet50_v100.json",
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 4,
                  "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
                  "inter": {"latency_us": 30, "bandwidth_gbps": 25}},
      "strategies": [{"name": "three", "streams": 3}]})"));
  const auto executor = run::make_model_executor({scenario.cluster, {}, 1});
  collective::PriceBook book(scenario.cluster);
  const dialect::Dialect dummy{
      .name = "dummy", .summary = "one number", .read = read, .candidates = candidates};
  const Strategy& winner = scenario.strategies.front();
  const Emitted best = best_config(dummy, winner, scenario, *executor, book);
  EXPECT_GT(best.searched, 10u);
  EXPECT_FALSE(best.exact) << "it has one stream";
  for (const Bytes size : {Bytes{1}, kMiB, 4 * kMiB, 25 * kMiB, kGiB}) {
    const Json config{{"bucket", size}};
    const Strategy other =
        dialect::reading_of(dummy, config, scenario.workload, scenario.cluster).strategy;
    EXPECT_LE(
        best.step_time,
        measure::price_strategy(scenario, other, *executor, book).metrics.step_time * (1 + 1e-9));
  }

  // Without a list there is its least configuration.
  const dialect::Dialect silent{.name = "silent", .summary = "reads only", .read = read};
  const Emitted least = best_config(silent, winner, scenario, *executor, book);
  EXPECT_EQ(least.searched, 1u);
  EXPECT_EQ(least.config, Json::object());
}

}  // namespace
}  // namespace syncline::tune
