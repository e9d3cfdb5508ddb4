// scenarios/schema.json is what editors show and check while a user writes a scenario. Here it is
// held against every file that ships, and against files with one mistake each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "core/collective/nccl.h"
#include "core/compress/codec.h"
#include "core/dialect/dialect.h"
#include "core/hardware/node.h"
#include "core/input/knobs.h"
#include "core/input/presets.h"
#include "core/input/schema_part.h"
#include "core/operators/architecture.h"
#include "tests/support/full_scenario.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Pointer = json::json_pointer;

const fs::path kScenarios = fs::path(SYNCLINE_SOURCE_DIR) / "scenarios";

// What the schema allows and the scenario of the reader's tests lacks. Together every optional key
// of the format stands there once; a test below sees to it. The mistakes of the other tests are
// made in the two together, one at a time.
constexpr std::string_view kMoreKeys = R"json([
  {"op": "add", "path": "/workload/tensors/0/forward_us", "value": 10},
  {"op": "add", "path": "/workload/tensors/0/copy_in_us", "value": 3},
  {"op": "add", "path": "/workload/tensors/0/copy_out_us", "value": 4},
  {"op": "add", "path": "/workload/copy_kernels_ms", "value": 0.001},
  {"op": "add", "path": "/workload/host_gap_ms", "value": 0.1},
  {"op": "add", "path": "/workload/buffer_broadcast_ms", "value": 0.2},
  {"op": "add", "path": "/workload/time_spread", "value": 0.05},
  {"op": "add", "path": "/search/bucket_copies", "value": [true, false]},
  {"op": "add", "path": "/workload/operators", "value": {
    "values": [{"name": "x", "bytes": 4096}, {"name": "y", "bytes": 4096}],
    "list": [{"kind": "matmul_v2", "part": "backward", "inputs": ["x", "x"], "outputs": ["y"],
              "in_place": ["z"], "matrix_flops": 1e6, "flops": 1e3, "dtype": "fp16",
              "layout": "NHWC", "kernels": 2, "columns": 64}]}},
  {"op": "add", "path": "/cluster/intra/measured_steps_us", "value": [[1024, 3.5], [1048576, 10.5]]},
  {"op": "add", "path": "/cluster/calibration/forced_tree",
   "value": {"factor": 4.1, "source": "made up"}},
  {"op": "add", "path": "/cluster/device/half_tflops", "value": 125},
  {"op": "add", "path": "/cluster/device/kernel_gap_us", "value": 1},
  {"op": "add", "path": "/cluster/device/overlap_slowdown", "value": 0.2},
  {"op": "add", "path": "/cluster/device/overlap_collective_slowdown", "value": 0.1},
  {"op": "add", "path": "/cluster/device/overlap_delay_us", "value": 100},
  {"op": "add", "path": "/cluster/device/overlap_spread", "value": 0.1},
  {"op": "add", "path": "/strategies/1/fusion/order", "value": "forward"},
  {"op": "add", "path": "/strategies/1/fusion/cycle_ms", "value": 1},
  {"op": "add", "path": "/strategies/1/fusion/cast", "value": "fp32"},
  {"op": "add", "path": "/strategies/1/compute_fusion", "value": {
    "fuse_relu_depthwise_conv": true, "fuse_bn_act_ops": true, "fuse_bn_add_act_ops": false,
    "fuse_gemm_epilogue": true, "fuse_elewise_add_act_ops": true,
    "fuse_all_optimizer_ops": false}},
  {"op": "add", "path": "/strategies/3/local_sgd/period", "value": 4},
  {"op": "add", "path": "/sweep/seed", "value": [1, 2]},
  {"op": "replace", "path": "/search/fusion/count", "value": "breakpoints"},
  {"op": "add", "path": "/search/compute_fusion", "value": ["none", {"fuse_gemm_epilogue": true}]}
])json";

constexpr std::string_view kSmallScenario = R"json({
  "name": "small",
  "workload": {
    "file": "workloads/resnet50_v100.json", "batch": 64, "host_gap_ms": 1, "copy_kernels_ms": 1,
    "buffer_broadcast_ms": 0.5, "time_spread": 0.1,
    "operators": {"architecture": "resnet50", "dtype": "fp16", "layout": "NHWC", "image": 224,
                  "classes": 1000, "sequence": 128, "optimizer": "momentum",
                  "fused_attention": false, "fused_feedforward": false, "fused_linear": false,
                  "flash_attention": false, "autocast": false,
                  "shape": {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "head_width": 16,
                            "inner": 256, "words": 100, "positions": 1024, "kinds": 2, "patch": 16,
                            "tied": false, "bias": false, "head_norm": false}}
  },
  "cluster": {"node": "dgx-h100", "nodes": 1, "intra": {"nics": 1},
              "device": {"base": "h200-sxm", "efficiency": 0.5}},
  "strategies": [
    {"name": "plain"},
    {"name": "ddp", "dialect": "pytorch", "config": {"bucket_cap_mb": 25}, "read_as": "code",
     "algorithm": "ring"}
  ],
  "training": {"step": 10}
})json";

json read_json(const fs::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

const json& schema_json() {
  static const json schema = read_json(kScenarios / "schema.json");
  return schema;
}

// One compiled part of the schema.
class Checker {
 public:
  explicit Checker(const json& schema) {
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), schema_);
  }

  // What is wrong, one mistake a line; empty if nothing is.
  std::string errors(const json& document) const {
    valijson::ValidationResults results;
    const valijson::adapters::NlohmannJsonAdapter target(document);
    if (valijson::Validator().validate(schema_, target, &results)) return "";
    std::string text;
    for (const auto& error : results) {
      for (const std::string& step : error.context) text += step;
      text += ": " + error.description + "\n";
    }
    return text.empty() ? "rejected without a reason\n" : text;
  }

  bool accepts(const json& document) const { return errors(document).empty(); }

 private:
  valijson::Schema schema_;
};

// A part of the schema with the definitions that it refers to. Draft 7 ignores what stands beside
// a $ref, so the part goes below allOf.
json stand_alone(const json& part) {
  return {{"definitions", schema_json().at("definitions")}, {"allOf", json::array({part})}};
}

json definition(const std::string& name) {
  return stand_alone({{"$ref", "#/definitions/" + name}});
}

// Compiled once: valijson takes its time.
const Checker& scenario_checker() {
  static const Checker checker(schema_json());
  return checker;
}

const Checker& workload_checker() {
  static const Checker checker(definition("workload"));
  return checker;
}

const Checker& cluster_checker() {
  static const Checker checker(definition("cluster"));
  return checker;
}

std::vector<fs::path> json_files(const fs::path& directory) {
  std::vector<fs::path> files;
  if (!fs::is_directory(directory)) return files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".json" && path.filename() != "schema.json") files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

void expect_all_accepted(const Checker& checker, const std::vector<fs::path>& files) {
  for (const fs::path& path : files) {
    SCOPED_TRACE(path.string());
    json document;
    // One file that is not even JSON must not hide what is wrong with the next.
    ASSERT_NO_THROW(document = read_json(path));
    EXPECT_EQ(checker.errors(document), "");
  }
}

using Visit = std::function<void(const Pointer&, const json&)>;

void walk(const json& node, const Pointer& at, const Visit& visit) {
  visit(at, node);
  if (node.is_object()) {
    for (const auto& [key, value] : node.items()) walk(value, at / key, visit);
  } else if (node.is_array()) {
    for (std::size_t i = 0; i < node.size(); ++i) walk(node[i], at / i, visit);
  }
}

// Maps from paths to values: their keys are the user's, not the format's.
bool is_path_map(const Pointer& at) {
  return !at.empty() && (at.back() == "sweep" || at.to_string() == "/calibration/parameters");
}

bool inside_sweep(const Pointer& at) { return at.to_string().find("/sweep/") != std::string::npos; }

const json& full_scenario() {
  static const json full = json::parse(test::kFullScenarioText).patch(json::parse(kMoreKeys));
  return full;
}

// The schema's own objects, i.e. those that list the properties of an object.
bool lists_properties(const json& node) {
  return node.is_object() && node.value("type", json()) == "object" && node.contains("properties");
}

// The schema in the file's own form: what fits on a line stands on one.
std::string laid_out(const Json& node, const std::string& indent, std::size_t taken) {
  const bool described = node.is_object() && node.contains("description");
  std::string line = node.dump();
  if (!node.is_structured() || node.empty()) return line;
  std::string text;
  const auto entry = [&](const std::string& key, const Json& value, const char* between) {
    return (text.empty() ? "" : std::string(",") + between) + (key.empty() ? "" : key + ": ") +
           laid_out(value, indent + "  ", key.size() + 2);
  };
  const auto entries = [&](const char* between) {
    text.clear();
    if (node.is_array()) {
      for (const auto& value : node) text += entry("", value, between);
    } else {
      for (const auto& [key, value] : node.items()) text += entry(Json(key).dump(), value, between);
    }
    return text;
  };
  const char open = node.is_array() ? '[' : '{', close = node.is_array() ? ']' : '}';
  line = open + entries(" ") + close;
  const bool listed = node.is_array() && !node[0].is_structured();
  const bool fits =
      !described && line.find('\n') == line.npos && indent.size() + taken + line.size() < 130;
  if (listed || fits) return line;
  const std::string between = "\n" + indent + "  ";
  return open + between + entries(between.c_str()) + "\n" + indent + close;
}

// Whole numbers without a point.
Json plain(Json schema) {
  if (schema.is_structured()) {
    for (auto& value : schema) value = plain(value);
  } else if (schema.is_number_float() && schema.get<double>() == std::floor(schema.get<double>())) {
    schema = schema.get<std::int64_t>();
  }
  return schema;
}

template <typename T>
void put_knobs(const input::Table<T>& table, Json& definitions) {
  Json& properties = definitions.at(table.name).at("properties");
  for (const auto& knob : table.knobs) properties[knob.key] = plain(knob.schema);
}

// What a strategy may hold is said once, in the tables of core/input/knobs.cc.
TEST(Schema, KnobsAreThoseOfTheTables) {
  const fs::path path = kScenarios / "schema.json";
  std::ifstream file(path);
  const Json stated = Json::parse(file);
  Json schema = stated;
  Json& definitions = schema["definitions"];
  put_knobs(input::strategy_knobs(), definitions);
  put_knobs(input::compute_fusion_knobs(), definitions);
  put_knobs(input::assumed_cost_knobs(), definitions);
  put_knobs(input::fusion_knobs(), definitions);
  put_knobs(input::hierarchy_knobs(), definitions);
  put_knobs(input::compression_knobs(), definitions);
  put_knobs(input::local_sgd_knobs(), definitions);
  // A key that no table has is one of a strategy's own words.
  const std::set<std::string> own{"name", "about", "dialect", "config", "read_as", "preset"};
  for (const auto& [stated_key, unused] : definitions.at("strategy").at("properties").items()) {
    const std::string key = stated_key;  // a lambda may capture it
    const auto& knobs = input::strategy_knobs().knobs;
    EXPECT_TRUE(own.contains(key) || std::any_of(knobs.begin(), knobs.end(),
                                                 [&](const auto& knob) { return knob.key == key; }))
        << key;
  }
  EXPECT_EQ(Json::diff(stated, schema).dump(), "[]") << "make it anew: SYNCLINE_UPDATE_GOLDEN=1";
  if (std::getenv("SYNCLINE_UPDATE_GOLDEN") != nullptr && stated != schema) {
    std::ofstream(path) << laid_out(schema, "", 0) << "\n";
  }
}

std::vector<std::string> allowed_at(const char* path) {
  return schema_json().at(Pointer(path)).at("enum").get<std::vector<std::string>>();
}

template <typename Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

// A row more in a table is a word more in the schema.
TEST(Schema, ListsTheRowsOfEveryTable) {
  EXPECT_EQ(allowed_at("/definitions/algorithm"), collective::algorithm_choices());
  EXPECT_EQ(allowed_at("/definitions/compression/properties/codec"), compress::codec_names());
  EXPECT_EQ(allowed_at("/definitions/strategy/properties/dialect"), dialect::dialect_names());
  EXPECT_EQ(allowed_at("/definitions/strategy/properties/preset"), input::preset_names());
  EXPECT_EQ(allowed_at("/definitions/architecture/properties/architecture"),
            operators::architecture_names());
  EXPECT_EQ(allowed_at("/definitions/device_name"), names_of(hardware::devices()));
  EXPECT_EQ(allowed_at("/definitions/named_cluster/properties/node"), names_of(hardware::nodes()));
}

// What a search lists is what a strategy may say.
TEST(Schema, SearchesTakeTheWordsOfTheKnobs) {
  for (const char* key : {"exchange", "priority"}) {
    const std::string name = key;
    EXPECT_EQ(allowed_at(("/definitions/search/properties/" + name + "/items").c_str()),
              allowed_at(("/definitions/strategy/properties/" + name).c_str()));
  }
  EXPECT_EQ(allowed_at("/definitions/search/properties/fusion/properties/close/items"),
            allowed_at("/definitions/fusion/properties/close"));
}

TEST(Schema, AcceptsEveryScenario) {
  expect_all_accepted(scenario_checker(), json_files(kScenarios));
}

TEST(Schema, AcceptsEveryPublishedScenario) {
  expect_all_accepted(scenario_checker(), json_files(kScenarios / "published"));
}

TEST(Schema, AcceptsEveryDocumentedListing) {
  expect_all_accepted(scenario_checker(), json_files(kScenarios / "documented"));
}

TEST(Schema, AcceptsEveryWorkload) {
  const std::vector<fs::path> files = json_files(kScenarios / "workloads");
  EXPECT_GE(files.size(), 1u);  // otherwise the directory is not where the test looks for it
  expect_all_accepted(workload_checker(), files);
}

TEST(Schema, AcceptsEveryCluster) {
  expect_all_accepted(cluster_checker(), json_files(kScenarios / "clusters"));
}

TEST(Schema, AcceptsWhatJobsRecorded) {
  const std::vector<fs::path> files = json_files(kScenarios / "record");
  EXPECT_GE(files.size(), 2U);
  expect_all_accepted(scenario_checker(), files);
}

TEST(Schema, AcceptsTheSmallestAndTheFullestScenario) {
  EXPECT_EQ(scenario_checker().errors(json::parse(kSmallScenario)), "");
  EXPECT_EQ(scenario_checker().errors(full_scenario()), "");
  EXPECT_EQ(workload_checker().errors(full_scenario().at("workload")), "");
  EXPECT_EQ(cluster_checker().errors(full_scenario().at("cluster")), "");
}

// A scenario is checked with its workload and cluster as strings or as objects; a file of its own
// is checked by its definition. None is to be taken for another.
TEST(Schema, TellsTheKindsOfFilesApart) {
  const json full = full_scenario();
  EXPECT_FALSE(workload_checker().accepts(full));
  EXPECT_FALSE(cluster_checker().accepts(full));
  EXPECT_FALSE(scenario_checker().accepts(full.at("workload")));
  EXPECT_FALSE(workload_checker().accepts(full.at("cluster")));
  EXPECT_FALSE(cluster_checker().accepts(full.at("workload")));
}

// Otherwise a key could be added to the schema without any test of it.
TEST(Schema, FullScenarioHasEveryKey) {
  std::set<std::string> used;
  for (const json& scenario : {full_scenario(), json::parse(kSmallScenario)}) {
    walk(scenario, Pointer(), [&](const Pointer& at, const json&) {
      if (!at.empty()) used.insert(at.back());
    });
  }
  walk(schema_json(), Pointer(), [&](const Pointer& at, const json& node) {
    if (!lists_properties(node)) return;
    for (const auto& [key, value] : node.at("properties").items()) {
      EXPECT_TRUE(used.contains(key)) << at << "/properties/" << key;
    }
  });
}

// Editors show the description; where a property is only a reference, that of its definition.
TEST(Schema, DescribesEveryPropertyAndForbidsOthers) {
  walk(schema_json(), Pointer(), [](const Pointer& at, const json& node) {
    if (!lists_properties(node)) return;
    EXPECT_EQ(node.value("additionalProperties", json()), json(false)) << at;
    for (const auto& [key, property] : node.at("properties").items()) {
      const json* described = &property;
      if (property.contains("$ref")) {
        const std::string reference = property.at("$ref").get<std::string>();
        described = &schema_json().at(Pointer(reference.substr(1)));
      }
      EXPECT_FALSE(described->value("description", "").empty()) << at << "/properties/" << key;
    }
  });
}

TEST(Schema, DefaultsAreAllowedValues) {
  walk(schema_json(), Pointer(), [](const Pointer& at, const json& node) {
    if (!node.is_object() || !node.contains("default") || !node.contains("description")) return;
    EXPECT_EQ(Checker(stand_alone(node)).errors(node.at("default")), "") << at;
  });
}

TEST(Schema, RejectsAnUnknownKeyInEveryObject) {
  int objects = 0;
  walk(full_scenario(), Pointer(), [&](const Pointer& at, const json& node) {
    if (!node.is_object() || is_path_map(at)) return;
    json broken = full_scenario();
    broken[at]["unknown_key"] = 1;
    EXPECT_FALSE(scenario_checker().accepts(broken)) << at;
    ++objects;
  });
  EXPECT_GT(objects, 20);
}

TEST(Schema, RejectsAStringForEveryNumber) {
  int numbers = 0;
  walk(full_scenario(), Pointer(), [&](const Pointer& at, const json& node) {
    if (!node.is_number() || inside_sweep(at)) return;  // swept values may be anything
    json broken = full_scenario();
    broken[at] = node.dump();
    EXPECT_FALSE(scenario_checker().accepts(broken)) << at;
    ++numbers;
  });
  EXPECT_GT(numbers, 50);
}

TEST(Schema, RejectsANumberForEveryStringAndBool) {
  walk(full_scenario(), Pointer(), [&](const Pointer& at, const json& node) {
    if (!(node.is_string() || node.is_boolean()) || inside_sweep(at)) return;
    json broken = full_scenario();
    broken[at] = 1;
    EXPECT_FALSE(scenario_checker().accepts(broken)) << at;
  });
}

TEST(Schema, RejectsANumberForEveryObjectAndArray) {
  walk(full_scenario(), Pointer(), [](const Pointer& at, const json& node) {
    if (!node.is_structured()) return;
    json broken = full_scenario();
    broken[at] = 1;
    EXPECT_FALSE(scenario_checker().accepts(broken)) << at;
  });
}

// The few numbers that may be negative.
bool may_be_negative(const Pointer& at) {
  const std::string path = at.to_string();
  return path == "/seed" || path == "/published/0/accuracy" ||
         path.starts_with("/calibration/parameters/") ||
         (path.starts_with("/training/loss/") && path.ends_with("/1"));
}

TEST(Schema, RejectsEveryOtherNegativeNumber) {
  walk(full_scenario(), Pointer(), [](const Pointer& at, const json& node) {
    if (!node.is_number() || inside_sweep(at)) return;
    json broken = full_scenario();
    broken[at] = -1;
    EXPECT_EQ(scenario_checker().accepts(broken), may_be_negative(at)) << at;
  });
}

TEST(Schema, RejectsEveryEmptyName) {
  walk(full_scenario(), Pointer(), [](const Pointer& at, const json&) {
    if (at.empty()) return;
    if (at.back() != "name" && at.back() != "baseline" && at.back() != "strategy") return;
    json broken = full_scenario();
    broken[at] = "";
    EXPECT_FALSE(scenario_checker().accepts(broken)) << at;
  });
}

struct Mistake {
  std::string_view what;
  std::string_view patch;  // RFC 6902, applied to the full scenario
};

constexpr Mistake kMistakes[] = {
    {"no name", R"([{"op":"remove","path":"/name"}])"},
    {"no workload", R"([{"op":"remove","path":"/workload"}])"},
    {"no cluster", R"([{"op":"remove","path":"/cluster"}])"},
    {"no strategies", R"([{"op":"remove","path":"/strategies"}])"},
    {"empty strategies", R"([{"op":"replace","path":"/strategies","value":[]}])"},
    {"strategies as an object", R"([{"op":"replace","path":"/strategies","value":{"name":"a"}}])"},
    {"broken seed", R"([{"op":"replace","path":"/seed","value":1.5}])"},

    {"sweep over nothing", R"([{"op":"replace","path":"/sweep/cluster.nodes","value":[]}])"},
    {"sweep with a bare value", R"([{"op":"replace","path":"/sweep/cluster.nodes","value":4}])"},
    {"sweep path of no key", R"([{"op":"add","path":"/sweep/clutser.nodes","value":[4]}])"},
    {"sweep path with a hole", R"([{"op":"add","path":"/sweep/cluster..nodes","value":[4]}])"},

    {"step and steps", R"([{"op":"add","path":"/training/step","value":5}])"},
    {"from without steps", R"([{"op":"remove","path":"/training/steps"}])"},
    {"no steps at all", R"([{"op":"replace","path":"/training/steps","value":0}])"},
    {"negative step", R"([{"op":"replace","path":"/training","value":{"step":-1}}])"},
    {"learning rate of zero",
     R"([{"op":"replace","path":"/training/learning_rate/initial","value":0}])"},
    {"decay without power",
     R"([{"op":"replace","path":"/training/learning_rate/power","value":0}])"},
    {"unknown decay",
     R"([{"op":"replace","path":"/training/learning_rate/decay","value":"exponential"}])"},
    {"loss point of one number", R"([{"op":"replace","path":"/training/loss/0","value":[0]}])"},
    {"loss point of three numbers",
     R"([{"op":"replace","path":"/training/loss/0","value":[0,1,2]}])"},
    {"loss of no point", R"([{"op":"replace","path":"/training/loss","value":[]}])"},
    {"loss at a broken step", R"([{"op":"replace","path":"/training/loss/0/0","value":0.5}])"},

    {"published without strategy", R"([{"op":"remove","path":"/published/0/strategy"}])"},
    {"published without a quantity",
     R"([{"op":"replace","path":"/published/0","value":{"strategy":"plain","accuracy":76}}])"},
    {"published with unknown use", R"([{"op":"replace","path":"/published/0/use","value":"no"}])"},
    {"published step in no time",
     R"([{"op":"replace","path":"/published/0/step_time_s","value":0}])"},
    {"published throughput of nothing",
     R"([{"op":"replace","path":"/published/0/throughput","value":0}])"},
    {"published speedup of nothing",
     R"([{"op":"replace","path":"/published/0/speedup","value":0}])"},
    {"published bucket of one number",
     R"([{"op":"replace","path":"/published/0/buckets/0","value":[2]}])"},
    {"published bucket of three numbers",
     R"([{"op":"replace","path":"/published/0/buckets/0","value":[2,0.25,1]}])"},
    {"published buckets of no bucket",
     R"([{"op":"replace","path":"/published/0/buckets","value":[]}])"},
    {"published bucket of no tensors",
     R"([{"op":"replace","path":"/published/0/buckets/0/0","value":0}])"},
    {"published sweep path of no key",
     R"([{"op":"add","path":"/published/0/sweep/nodes","value":4}])"},

    {"calibration without parameters", R"([{"op":"remove","path":"/calibration/parameters"}])"},
    {"calibration of nothing", R"([{"op":"replace","path":"/calibration/parameters","value":{}}])"},
    {"calibration without a bound",
     R"([{"op":"remove","path":"/calibration/parameters/cluster.inter.efficiency/max"}])"},
    {"calibration path of no key",
     R"([{"op":"move","from":"/calibration/parameters/cluster.inter.efficiency",
          "path":"/calibration/parameters/efficiency"}])"},
    {"leave out of no kind",
     R"([{"op":"replace","path":"/calibration/leave_out","value":"rows"}])"},

    {"unknown grain", R"([{"op":"replace","path":"/simulation/grain","value":"fine"}])"},
    {"fold as a string", R"([{"op":"replace","path":"/simulation/fold","value":"true"}])"},
    {"no periods", R"([{"op":"replace","path":"/simulation/periods","value":0}])"},

    {"workload as a number", R"([{"op":"replace","path":"/workload","value":3}])"},
    {"workload of empty path", R"([{"op":"replace","path":"/workload","value":""}])"},
    {"cluster of empty path", R"([{"op":"replace","path":"/cluster","value":""}])"},
    {"workload without name", R"([{"op":"remove","path":"/workload/name"}])"},
    {"workload without tensors", R"([{"op":"remove","path":"/workload/tensors"}])"},
    {"workload of no tensor", R"([{"op":"replace","path":"/workload/tensors","value":[]}])"},
    {"batch of nothing", R"([{"op":"replace","path":"/workload/batch","value":0}])"},
    {"batch of a half", R"([{"op":"replace","path":"/workload/batch","value":0.5}])"},
    {"unknown dtype", R"([{"op":"replace","path":"/workload/dtype","value":"float32"}])"},
    {"unknown dtype of a tensor",
     R"([{"op":"replace","path":"/workload/tensors/0/dtype","value":"int8"}])"},
    {"tensor without name", R"([{"op":"remove","path":"/workload/tensors/0/name"}])"},
    {"tensor without shape", R"([{"op":"remove","path":"/workload/tensors/0/shape"}])"},
    {"dimension of zero", R"([{"op":"replace","path":"/workload/tensors/0/shape/0","value":0}])"},
    {"dimension of a half",
     R"([{"op":"replace","path":"/workload/tensors/0/shape/0","value":2.5}])"},
    {"buffer without shape", R"([{"op":"remove","path":"/workload/buffers/0/shape"}])"},

    {"cluster as an array", R"([{"op":"replace","path":"/cluster","value":[]}])"},
    {"no nodes", R"([{"op":"replace","path":"/cluster/nodes","value":0}])"},
    {"nodes not given", R"([{"op":"remove","path":"/cluster/nodes"}])"},
    {"no GPU", R"([{"op":"replace","path":"/cluster/gpus_per_node","value":0}])"},
    {"half a GPU", R"([{"op":"replace","path":"/cluster/gpus_per_node","value":0.5}])"},
    {"GPUs not given", R"([{"op":"remove","path":"/cluster/gpus_per_node"}])"},
    {"nothing between nodes", R"([{"op":"remove","path":"/cluster/inter"}])"},
    {"nothing inside nodes", R"([{"op":"remove","path":"/cluster/intra"}])"},
    {"negative latency", R"([{"op":"replace","path":"/cluster/inter/latency_us","value":-1}])"},
    {"latency not given", R"([{"op":"remove","path":"/cluster/intra/latency_us"}])"},
    {"zero bandwidth", R"([{"op":"replace","path":"/cluster/inter/bandwidth_gbps","value":0}])"},
    {"bandwidth not given", R"([{"op":"remove","path":"/cluster/intra/bandwidth_gbps"}])"},
    {"zero flow cap", R"([{"op":"replace","path":"/cluster/inter/flow_cap_gbps","value":0}])"},
    {"no port", R"([{"op":"replace","path":"/cluster/inter/nics","value":0}])"},
    {"zero efficiency", R"([{"op":"replace","path":"/cluster/inter/efficiency","value":0}])"},
    {"efficiency above one",
     R"([{"op":"replace","path":"/cluster/inter/efficiency","value":1.1}])"},
    {"oversubscription below one",
     R"([{"op":"replace","path":"/cluster/inter/oversubscription","value":0.5}])"},
    {"tier with a name", R"([{"op":"add","path":"/cluster/inter/name","value":"ethernet"}])"},
    {"upper tier without name", R"([{"op":"remove","path":"/cluster/upper/0/name"}])"},
    {"upper tier without groups", R"([{"op":"remove","path":"/cluster/upper/0/nodes_per_group"}])"},
    {"upper tier of empty groups",
     R"([{"op":"replace","path":"/cluster/upper/0/nodes_per_group","value":0}])"},
    {"upper tier of no bandwidth",
     R"([{"op":"replace","path":"/cluster/upper/0/bandwidth_gbps","value":0}])"},
    {"upper tier without ports", R"([{"op":"replace","path":"/cluster/upper/0/nics","value":0}])"},
    {"device that reaches nothing",
     R"([{"op":"replace","path":"/cluster/device/efficiency","value":0}])"},
    {"device efficiency above one",
     R"([{"op":"replace","path":"/cluster/device/efficiency","value":50}])"},
    {"unknown distribution",
     R"([{"op":"replace","path":"/cluster/jitter/distribution","value":"uniform"}])"},

    {"strategy without name", R"([{"op":"remove","path":"/strategies/0/name"}])"},
    {"overlap as a string", R"([{"op":"replace","path":"/strategies/1/overlap","value":"no"}])"},
    {"no stream", R"([{"op":"replace","path":"/strategies/1/streams","value":0}])"},
    {"too many streams", R"([{"op":"replace","path":"/strategies/1/streams","value":65}])"},
    {"unknown algorithm", R"([{"op":"replace","path":"/strategies/1/algorithm","value":"tree"}])"},
    {"unknown update", R"([{"op":"replace","path":"/strategies/1/update","value":"never"}])"},
    {"unknown fusion", R"([{"op":"replace","path":"/strategies/1/fusion/rule","value":"all"}])"},
    {"fusion as a number", R"([{"op":"replace","path":"/strategies/1/fusion","value":25}])"},
    {"empty buckets", R"([{"op":"replace","path":"/strategies/1/fusion/size_mb","value":0}])"},
    {"empty first bucket",
     R"([{"op":"replace","path":"/strategies/1/fusion/first_size_mb","value":0}])"},
    {"buckets of no tensor", R"([{"op":"replace","path":"/strategies/1/fusion/count","value":0}])"},
    {"the same end twice", R"([{"op":"replace","path":"/strategies/2/fusion/ends/0","value":2}])"},
    {"unknown close", R"([{"op":"replace","path":"/strategies/1/fusion/close","value":"at"}])"},
    {"unknown layer key",
     R"([{"op":"replace","path":"/strategies/1/fusion/layer_key","value":"dot"}])"},
    {"no alignment", R"([{"op":"replace","path":"/strategies/1/fusion/align_bytes","value":0}])"},
    {"hierarchy without form", R"([{"op":"remove","path":"/strategies/1/hierarchy/form"}])"},
    {"unknown form", R"([{"op":"replace","path":"/strategies/1/hierarchy/form","value":"2d"}])"},
    {"group of one", R"([{"op":"replace","path":"/strategies/1/hierarchy/group_size","value":1}])"},
    {"unknown first", R"([{"op":"replace","path":"/strategies/1/hierarchy/first","value":"sum"}])"},
    {"unknown inside",
     R"([{"op":"replace","path":"/strategies/1/hierarchy/inside","value":"tree"}])"},
    {"unknown across",
     R"([{"op":"replace","path":"/strategies/1/hierarchy/across","value":"tree"}])"},
    {"compression without codec", R"([{"op":"remove","path":"/strategies/2/compression/codec"}])"},
    {"unknown codec",
     R"([{"op":"replace","path":"/strategies/2/compression/codec","value":"topk"}])"},
    {"sparsity of 1.5",
     R"([{"op":"replace","path":"/strategies/2/compression/sparsity/1","value":1.5}])"},
    {"sparsity of 1",
     R"([{"op":"replace","path":"/strategies/2/compression/sparsity/1","value":1}])"},
    {"bare sparsity",
     R"([{"op":"replace","path":"/strategies/2/compression/sparsity","value":0.999}])"},
    {"no sparsity", R"([{"op":"replace","path":"/strategies/2/compression/sparsity","value":[]}])"},
    {"ramp of no step",
     R"([{"op":"replace","path":"/strategies/2/compression/rampup_step","value":0}])"},
    {"half a launch",
     R"([{"op":"replace","path":"/strategies/2/compression/encode_launches","value":0.5}])"},
    {"absurdly many launches",
     R"([{"op":"replace","path":"/strategies/2/compression/decode_launches","value":1e9}])"},
    {"period of zero", R"([{"op":"replace","path":"/strategies/3/local_sgd/period","value":0}])"},
    {"begin at step zero",
     R"([{"op":"replace","path":"/strategies/3/local_sgd/begin_step","value":0}])"},
    {"adaptive as a number",
     R"([{"op":"replace","path":"/strategies/3/local_sgd/adaptive","value":1}])"},
    {"first period of zero",
     R"([{"op":"replace","path":"/strategies/3/local_sgd/init_period","value":0}])"},
    {"longest period of zero",
     R"([{"op":"replace","path":"/strategies/3/local_sgd/max_period","value":0}])"},
};

TEST(Schema, RejectsEveryMistake) {
  for (const Mistake& mistake : kMistakes) {
    SCOPED_TRACE(mistake.what);
    json broken;
    // A patch that does not fit the full scenario any more must fail, not pass as a rejection.
    ASSERT_NO_THROW(broken = full_scenario().patch(json::parse(mistake.patch)));
    EXPECT_FALSE(scenario_checker().accepts(broken));
  }
}

// The definitions must be as strict when they check a file of its own.
TEST(Schema, RejectsMistakesInFilesOfTheirOwn) {
  json workload = full_scenario().at("workload");
  workload["tensors"][0]["unknown_key"] = 1;
  EXPECT_FALSE(workload_checker().accepts(workload));

  json cluster = full_scenario().at("cluster");
  cluster["inter"]["latency_us"] = -1;
  EXPECT_FALSE(cluster_checker().accepts(cluster));
}

// A file with changes needs no more than its name; what is changed is judged like any other key.
TEST(Schema, FilesMayBeChangedInPlace) {
  json scenario = json::parse(kSmallScenario);
  scenario["workload"] = {{"file", "workloads/w.json"}};
  EXPECT_EQ(scenario_checker().errors(scenario), "");
  scenario["workload"]["batch"] = 64;
  scenario["cluster"] = {{"file", "clusters/c.json"}, {"nodes", 8}};
  scenario["cluster"]["inter"] = {{"latency_us", 5}, {"bandwidth_gbps", 100}};
  EXPECT_EQ(scenario_checker().errors(scenario), "");

  const auto refuses = [&](const char* path, const json& value) {
    json broken = scenario;
    broken[Pointer(path)] = value;
    EXPECT_FALSE(scenario_checker().accepts(broken)) << path << " = " << value;
  };
  refuses("/workload/file", "");
  refuses("/workload/file", 3);
  refuses("/workload/batch", 0);
  refuses("/workload/bacth", 64);
  refuses("/workload/nodes", 8);
  refuses("/cluster/file", nullptr);
  refuses("/cluster/nodes", 0);
  refuses("/cluster/node", 8);
  refuses("/cluster/inter/latency_us", -1);
  // Such an object stands in a scenario alone: a file of its own is complete.
  EXPECT_FALSE(workload_checker().accepts(scenario["workload"]));
  EXPECT_FALSE(cluster_checker().accepts(scenario["cluster"]));
}

// The reader's tests make their mistakes in a scenario of their own; the schema knows its keys too.
TEST(Schema, AcceptsTheScenarioOfTheReadersTests) {
  EXPECT_EQ(scenario_checker().errors(json::parse(test::kFullScenarioText)), "");
}

// A part stands alone: it has every definition that it refers to, and no other.
TEST(Schema, PartsAreWholeAndHoldNothingElse) {
  const Json schema = Json::parse(schema_json().dump());
  for (const std::string name : {"workload", "cluster", "strategy"}) {
    const json part = json::parse(input::schema_part(schema, name).dump());
    std::set<std::string> wanted, held;
    walk(part, Pointer(), [&](const Pointer&, const json& node) {
      if (node.is_object() && node.contains("$ref")) {
        wanted.insert(node["$ref"].get<std::string>().substr(std::string("#/definitions/").size()));
      }
    });
    for (const auto& [key, unused] : part.at("definitions").items()) held.insert(key);
    EXPECT_EQ(wanted, held) << name;
    EXPECT_LT(held.size(), schema_json().at("definitions").size());
  }
}

TEST(Schema, PartsAcceptTheirFilesAndRefuseAnUnknownKey) {
  const Json schema = Json::parse(schema_json().dump());
  for (const std::string name : {"workload", "cluster"}) {
    const Checker checker(json::parse(input::schema_part(schema, name).dump()));
    const auto files = json_files(kScenarios / (name + "s"));
    EXPECT_GT(files.size(), 3u);
    expect_all_accepted(checker, files);
    json wrong = read_json(files.front());
    wrong["not_a_key"] = 1;
    EXPECT_FALSE(checker.accepts(wrong));
  }
}

// An editor that follows a file's "$schema" comes to the definition of its kind.
TEST(Schema, FilesNameTheSchemaOfTheirKind) {
  for (const std::string name : {"workload", "cluster"}) {
    for (const fs::path& path : json_files(kScenarios / (name + "s"))) {
      const fs::path link = path.parent_path() / read_json(path).value("$schema", "");
      ASSERT_TRUE(fs::is_regular_file(link)) << path;
      const std::string reference = read_json(link).at("$ref");
      const std::size_t mark = reference.find('#');
      const fs::path target = link.parent_path() / reference.substr(0, mark);
      EXPECT_TRUE(fs::equivalent(target, kScenarios / "schema.json")) << path;
      EXPECT_EQ(reference.substr(mark), "#/definitions/" + name) << path;
    }
  }
}

// Editors offer the stated default: writing it down must mean what leaving the key out means.
TEST(Schema, StatedDefaultsAreTheReadersDefaults) {
  const json& definitions = schema_json().at("definitions");
  const auto stated = [&](const char* part, const char* key) {
    return definitions.at(part).at("properties").at(key).at("default");
  };
  Json scenario = test::small_scenario();
  scenario["cluster"]["jitter"] = {{"relative", 0.1}};
  scenario["strategies"][0]["fusion"] = {{"size_mb", 1}};
  const Scenario left_out = test::parsed(scenario);
  scenario["cluster"]["jitter"]["distribution"] = stated("jitter", "distribution");
  scenario["strategies"][0]["fusion"]["rule"] = stated("fusion", "rule");
  const Scenario written = test::parsed(scenario);
  EXPECT_EQ(left_out.cluster.jitter.kind, written.cluster.jitter.kind);
  EXPECT_EQ(left_out.strategies[0].fusion.rule, written.strategies[0].fusion.rule);
}

// A network that no message crosses need not be given.
TEST(Schema, AsksOnlyForTheTiersThatAreUsed) {
  json cluster = full_scenario().at("cluster");
  cluster["nodes"] = 1;
  cluster.erase("inter");
  EXPECT_EQ(cluster_checker().errors(cluster), "");

  cluster = full_scenario().at("cluster");
  cluster["gpus_per_node"] = 1;
  cluster.erase("intra");
  EXPECT_EQ(cluster_checker().errors(cluster), "");
}

}  // namespace
}  // namespace syncline
