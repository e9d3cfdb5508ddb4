// One row, one answer: run, explain, plan, buckets and tune say the same of the same strategy, over
// all scenarios that come with the program.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "formats/input/document.h"
#include "tests/support/expect.h"
#include "tests/support/program.h"

namespace syncline::cli {
namespace {

std::vector<std::string> library() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SYNCLINE_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    const Json root = Json::parse(in, nullptr, false);
    if (root.is_object() && root.contains("strategies")) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Rows of `run` that no sweep changed, by strategy; each file is run once.
const std::map<std::string, Json>& rows_of(const std::string& file) {
  static std::map<std::string, std::map<std::string, Json>> known;
  const auto [rows, fresh] = known.try_emplace(file);
  if (!fresh) return rows->second;
  const Json ran = test::syncline_json({"run", file});
  for (const Json& row : ran.at("rows")) {
    if (row.at("sweep").empty()) rows->second[row.at("strategy")] = row;
  }
  return rows->second;
}

void expect_same(const Json& said, const Json& row, const std::string& what) {
  for (const char* key :
       {"step_time_s", "step_time_low_s", "step_time_high_s", "throughput", "collectives",
        "bytes_on_wire_per_rank", "compute_s", "communication_s", "exposed_communication_s",
        "handling_s", "lower_bound_s", "memory_bytes"}) {
    EXPECT_EQ(said.value(key, Json()), row.value(key, Json())) << what << ": " << key;
  }
}

TEST(VerbsAgree, RunAndExplain) {
  std::size_t compared = 0;
  for (const std::string& file : library()) {
    const auto& rows = rows_of(file);
    if (rows.empty()) continue;
    const Json explained = test::syncline_json({"explain", file});
    for (const Json& strategy : explained.at("strategies")) {
      const std::string name = strategy.at("name");
      expect_same(strategy, rows.at(name), file + ", " + name);
      ++compared;
    }
  }
  EXPECT_GT(compared, 300u);
}

// What the lists of a plan and of its buckets count is what `run` says. Of a training of several
// phases that is the mean; of Horovod's cycles `plan` shows one moment.
void expect_counted(const std::string& file, const Strategy& strategy, const Json& row) {
  const std::string what = file + ", " + strategy.name;
  const Json plans = test::syncline_json({"plan", file, "--strategy", strategy.name}).at("plans");
  double all = 0, steps = 0;
  for (const Json& plan : plans) {
    std::size_t listed = 0;
    for (const Json& op : plan.at("operations")) listed += op.contains("bytes");
    const double per_step = plan.at("collectives");
    EXPECT_DOUBLE_EQ(per_step * plan.at("period").get<double>(), static_cast<double>(listed))
        << what;
    all += per_step * plan.at("steps").get<double>();
    steps += plan.at("steps").get<double>();
  }
  if (strategy.fusion.cycle <= 0) {
    const double said = row.at("collectives");
    EXPECT_NEAR(all / steps, said, 1e-9 * said) << what;
  }
  const Json buckets = test::syncline_json({"buckets", file, "--strategy", strategy.name});
  EXPECT_EQ(buckets.at("collectives"), plans.at(0).at("collectives")) << what;
  EXPECT_EQ(buckets.at("buckets").size(), plans.at(0).at("buckets")) << what;
}

TEST(VerbsAgree, RunPlanAndBuckets) {
  std::size_t turn = 0;  // one strategy a file, not always the first
  for (const std::string& file : library()) {
    const auto& rows = rows_of(file);
    const Scenario scenario = input::parse_scenario(input::read_document(file));
    const bool all = file.ends_with("/frameworks.json");
    for (std::size_t i = 0; i < scenario.strategies.size(); ++i) {
      const Strategy& strategy = scenario.strategies[i];
      const bool chosen = all || i == turn % scenario.strategies.size();
      if (chosen && rows.contains(strategy.name)) {
        expect_counted(file, strategy, rows.at(strategy.name));
      }
    }
    ++turn;
  }
}

constexpr const char* kSharded = R"({
  "name": "sharded",
  "workload": {"name": "four layers", "batch": 8, "forward_ms": 4, "tensors": [
    {"name": "layers.3.w", "shape": [1000, 1000], "backward_us": 3000},
    {"name": "layers.2.w", "shape": [1000, 1000], "backward_us": 3000},
    {"name": "layers.1.w", "shape": [1000, 1000], "backward_us": 3000},
    {"name": "layers.0.w", "shape": [1000, 1000], "backward_us": 3000}]},
  "cluster": {"name": "four", "nodes": 4, "gpus_per_node": 1,
              "inter": {"latency_us": 10, "bandwidth_gbps": 10}},
  "strategies": [{"name": "fsdp", "dialect": "fsdp", "config": {"units": ["layers.*"]}}]})";

// Each of the four units is gathered, gathered again and reduced: the root has no parameters, so
// that none stay. Parameters have buckets of their own.
TEST(VerbsAgree, AShardedBucketIsSeveralCollectives) {
  const test::Scratch scratch;
  const std::string file = scratch.path("sharded.json");
  test::write_text(file, kSharded);
  EXPECT_EQ(test::syncline_json({"run", file}).at("rows").at(0).at("collectives"), 12);
  EXPECT_EQ(test::syncline_json({"plan", file}).at("plans").at(0).at("buckets"), 8);
  for (const char* verb : {"explain", "plan", "buckets"}) {
    const auto said = test::syncline_run({verb, file}).out;
    EXPECT_TRUE(test::says(said, "12 collectives per step"));
  }
}

// Buckets that are merged by what the network costs hang on what other jobs leave of it.
TEST(VerbsAgree, OnASharedFabric) {
  Json scenario = Json::parse(R"({
    "name": "beside another",
    "workload": {"name": "layers", "forward_ms": 6, "tensors": []},
    "cluster": {"name": "two", "nodes": 2, "gpus_per_node": 1,
      "inter": {"latency_us": 12, "bandwidth_gbps": 20},
      "fabric": {"kind": "leaf_spine", "nodes": 16, "nodes_per_leaf": 4, "oversubscription": 4,
                 "placement": "spread"}},
    "strategies": [{"name": "merged", "fusion": {"rule": "mg_wfbp"}}],
    "others": [{"scenario": "other.json", "placement": "spread"}]})");
  for (int layer = 7; layer >= 0; --layer) {
    for (const auto& [part, rows, time] :
         {std::tuple("mlp", 960, 900), {"norm", 1, 30}, {"att", 480, 400}}) {
      scenario["workload"]["tensors"].push_back(
          {{"name", "layers." + std::to_string(layer) + "." + part},
           {"shape", {rows, 240}},
           {"backward_us", time}});
    }
  }
  const test::Scratch scratch;
  const std::string file = scratch.path("beside.json");
  test::write_text(file, scenario.dump());
  Json alone = scenario;
  alone.erase("others");
  alone["cluster"].erase("fabric");
  test::write_text(scratch.path("other.json"), alone.dump());
  const Json row = test::syncline_json({"run", file}).at("rows").at(0);
  const Json unlike = test::syncline_json({"run", scratch.path("other.json")}).at("rows").at(0);
  ASSERT_NE(row.at("collectives"), unlike.at("collectives")) << "the other job changes no bucket";
  const Scenario read = input::parse_scenario(input::read_document(file));
  expect_counted(file, read.strategies.front(), row);
}

TEST(VerbsAgree, RunAndTune) {
  for (const char* name : {"resnet50_ddp.json", "published/localsgd_resnet50.json"}) {
    const std::string file = SYNCLINE_SOURCE_DIR "/scenarios/" + std::string(name);
    const auto& rows = rows_of(file);
    const std::string baseline = input::parse_scenario(input::read_document(file)).baseline;
    const Json tuned = test::syncline_json({"tune", file});
    EXPECT_EQ(tuned.at("baseline_s"), rows.at(baseline).at("step_time_s")) << name;
    for (const Json& ranked : tuned.at("ranking")) {
      const auto row = rows.find(ranked.at("strategy").at("name"));
      if (row == rows.end()) continue;
      for (const char* key : {"step_time_s", "collectives", "exposed_communication_s", "handling_s",
                              "lower_bound_s", "memory_bytes"}) {
        EXPECT_EQ(ranked.at(key), row->second.at(key)) << name << ", " << row->first << ": " << key;
      }
    }
  }
}

}  // namespace
}  // namespace syncline::cli
