// Dialects are rows of one table: what they can do is asked of the row, never of the name.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/plan.h"
#include "formats/dialect/changes.h"
#include "formats/dialect/write.h"
#include "formats/input/document.h"
#include "tests/support/expect.h"
#include "tests/support/text.h"

namespace syncline::dialect {
namespace {

using test::contains;

Scenario small_scenario() {
  return input::parse_scenario(input::document_from_text("table", R"({"name": "table",
      "workload": ")" SYNCLINE_SOURCE_DIR R"(/scenarios/workloads/resnet50_v100.json",
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 4,
                  "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
                  "inter": {"latency_us": 8, "bandwidth_gbps": 100}},
      "strategies": [{"name": "plain"}]})"));
}

TEST(DialectTable, TheSchemaListsItsRows) {
  std::ifstream file(SYNCLINE_SOURCE_DIR "/scenarios/schema.json");
  const Json schema = Json::parse(file);
  const Json& strategy = schema.at(Json::json_pointer("/definitions/strategy"));
  std::vector<std::string> listed = strategy["properties"]["dialect"]["enum"];
  std::vector<std::string> names = dialect_names();
  std::sort(listed.begin(), listed.end());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(listed, names);
}

// Known and not modelled is said in one sentence, not as a mistake of the pen.
TEST(DialectTable, UnmodelledFrameworksAreNamedAsSuch) {
  const Scenario scenario = small_scenario();
  const std::vector<std::pair<const char*, const char*>> refused{
      {"hf_trainer", R"({"tp_size": 2})"},
      {"pytorch", R"({"device_mesh": [2, 4]})"},
      {"megatron", R"({"num-experts": 8})"},
      {"megatron", R"({"num-layers-per-virtual-pipeline-stage": 2})"},
      {"deepspeed", R"({"pipeline": {"stages": 4}})"},
      {"deepspeed",
       R"({"zero_optimization": {"stage": 3, "mics_hierarchical_params_gather": true}})"}};
  for (const auto& [name, config] : refused) {
    const std::string message = test::input_error([&, name = name, config = config] {
      reading_of(*find_dialect(name), Json::parse(config), scenario.workload, scenario.cluster);
    });
    EXPECT_TRUE(contains(message, "not modelled yet")) << name << config << message;
    EXPECT_FALSE(contains(message, "expected one of")) << message;
    EXPECT_FALSE(contains(message, "did you mean")) << message;
  }
  // Off is off.
  for (const auto& [name, config] : std::vector<std::pair<const char*, const char*>>{
           {"megatron", R"({"num-experts": null, "tensor-model-parallel-size": 1})"},
           {"deepspeed", R"({"pipeline": {"stages": "auto"}, "tensor_parallel": {"autotp_size": 1},
             "zero_optimization": {"mics_shard_size": -1, "zero_quantized_weights": false}})"},
           {"fsdp", R"({"mp_policy": {"param_dtype": null}})"}}) {
    EXPECT_NO_THROW(
        reading_of(*find_dialect(name), Json::parse(config), scenario.workload, scenario.cluster))
        << name << " " << config;
  }
}

TEST(DialectTable, EveryRowReadsItsLeastConfiguration) {
  const Scenario scenario = small_scenario();
  for (const Dialect& dialect : dialects()) {
    SCOPED_TRACE(dialect.name);
    EXPECT_FALSE(dialect.summary.empty());
    EXPECT_NO_THROW(
        reading_of(dialect, least_config(dialect), scenario.workload, scenario.cluster));
    // Whoever is written can be searched and advised about.
    EXPECT_EQ(dialect.suggest != nullptr, dialect.candidates != nullptr);
    EXPECT_NE(dialect.changes, nullptr);
  }
}

// A default that a message names is what the dialect assumes: given or not, the plan is the same.
TEST(DialectTable, DefaultsAreTheValuesOfAbsentKeys) {
  const Scenario scenario = small_scenario();
  for (const Dialect& dialect : dialects()) {
    for (const auto& [key, value] : dialect.defaults.items()) {
      // Keys that Paddle reads beside a switch only.
      if (key == "localsgd_configs" || key == "hierarchical_allreduce_inter_nranks") continue;
      SCOPED_TRACE(std::string(dialect.name) + " " + key);
      const Json least = least_config(dialect);
      Json given = least;
      given[key] = value;
      const auto plan_of = [&](const Json& config) {
        return plan::make_plan(
            scenario.workload, scenario.cluster,
            reading_of(dialect, config, scenario.workload, scenario.cluster).strategy);
      };
      EXPECT_EQ(plan_difference(plan_of(least), plan_of(given)), "");
    }
  }
}

// A framework that nobody has heard of: one number, the limit of a bucket in bytes.
Reading read_dummy(Reader config, const Workload&, const Cluster&, bool) {
  Reading reading;
  reading.strategy.fusion.rule = Fusion::Rule::kSize;
  reading.strategy.fusion.size = config.integer_or("bucket", 5000, 0, kGiB);
  config.finish();
  return reading;
}
std::vector<Json> suggest_dummy(const Strategy& strategy, const std::vector<plan::Bucket>&,
                                const Workload&, const Cluster&) {
  const Json config{{"bucket", strategy.fusion.size}};
  return {config};
}

TEST(DialectTable, ARowIsAllThatADialectNeeds) {
  const Dialect dummy{.name = "dummy",
                      .summary = "one number",
                      .read = read_dummy,
                      .suggest = suggest_dummy,
                      .defaults = {{"bucket", 5000}}};
  EXPECT_EQ(change_text(dummy, Json::object(), {{"bucket", 7000}}),
            "bucket: 5000 (default) -> 7000");
  const Scenario scenario = small_scenario();
  Strategy strategy;
  strategy.fusion.rule = Fusion::Rule::kSize;
  strategy.fusion.size = 16 * kMiB;
  const auto written = write_config(dummy, strategy, scenario.workload, scenario.cluster);
  ASSERT_TRUE(written);
  EXPECT_TRUE(written->exact) << written->difference;
  EXPECT_EQ(written->config, (Json{{"bucket", 16 * kMiB}}));
}

}  // namespace
}  // namespace syncline::dialect
