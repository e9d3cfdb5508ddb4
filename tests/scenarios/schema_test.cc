// scenarios/schema.json is what editors show and check while a user writes a scenario. Here it is
// held against every file that ships, and against files with one mistake each.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "formats/input/document.h"
#include "tests/scenarios/schema_cases.h"
#include "tests/support/full_scenario.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Pointer = json::json_pointer;
using test::walk;

const fs::path kScenarios = fs::path(SYNCLINE_SOURCE_DIR) / "scenarios";

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

// Maps from paths to values: their keys are the user's, not the format's.
bool is_path_map(const Pointer& at) {
  return !at.empty() && (at.back() == "sweep" || at.to_string() == "/calibration/parameters");
}

bool inside_sweep(const Pointer& at) { return at.to_string().find("/sweep/") != std::string::npos; }

const json& full_scenario() {
  static const json full = json::parse(test::kFullScenarioText).patch(json::parse(test::kMoreKeys));
  return full;
}

// The schema's own objects, i.e. those that list the properties of an object.
bool lists_properties(const json& node) {
  return node.is_object() && node.value("type", json()) == "object" && node.contains("properties");
}

TEST(Schema, AcceptsWhatShips) {
  struct Folder {
    const char* path;
    const Checker& checker;
    std::size_t files = 0;  // at least: it is where the test looks for it
  };
  for (const auto& [path, checker, least] :
       {Folder{"", scenario_checker()}, Folder{"documented", scenario_checker()},
        Folder{"record", scenario_checker(), 2}, Folder{"published", scenario_checker(), 1},
        Folder{"published/papers", scenario_checker(), 1},
        Folder{"published/jobs", scenario_checker(), 1},
        Folder{"published/fsdp", scenario_checker(), 1},
        Folder{"published/whole_jobs", scenario_checker(), 1},
        Folder{"workloads", workload_checker(), 1}, Folder{"clusters", cluster_checker()}}) {
    const auto files = json_files(kScenarios / path);
    EXPECT_GE(files.size(), least) << path;
    expect_all_accepted(checker, files);
  }
}

TEST(Schema, AcceptsTheSmallestAndTheFullestScenario) {
  EXPECT_EQ(scenario_checker().errors(json::parse(test::kSmallScenario)), "");
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
  for (const json& scenario : {full_scenario(), json::parse(test::kSmallScenario)}) {
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

// Tries the full scenario with one of its values changed, each in turn that `change` changes; gives
// how many these are.
int expect_rejected(const std::function<bool(const Pointer&, json&)>& change) {
  int tried = 0;
  walk(full_scenario(), Pointer(), [&](const Pointer& at, const json&) {
    json broken = full_scenario();
    if (!change(at, broken[at])) return;
    EXPECT_FALSE(scenario_checker().accepts(broken)) << at;
    ++tried;
  });
  return tried;
}

TEST(Schema, RejectsAnUnknownKeyInEveryObject) {
  EXPECT_GT(expect_rejected([](const Pointer& at, json& node) {
              if (!node.is_object() || is_path_map(at)) return false;
              node["unknown_key"] = 1;
              return true;
            }),
            20);
}

TEST(Schema, RejectsAStringForEveryNumber) {
  EXPECT_GT(expect_rejected([](const Pointer& at, json& node) {
              if (!node.is_number() || inside_sweep(at)) return false;  // may be anything
              node = node.dump();
              return true;
            }),
            50);
}

TEST(Schema, RejectsANumberForEverythingElse) {
  expect_rejected([](const Pointer& at, json& node) {
    const bool word = node.is_string() || node.is_boolean();
    if (!node.is_structured() && (!word || inside_sweep(at))) return false;
    node = 1;
    return true;
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
  expect_rejected([](const Pointer& at, json& node) {
    if (at.empty()) return false;
    if (at.back() != "name" && at.back() != "baseline" && at.back() != "strategy") return false;
    node = "";
    return true;
  });
}

json patch_of(std::string_view change) {
  std::istringstream words{std::string(change)};
  std::string op, path, rest;
  std::getline(words >> op >> path >> std::ws, rest);
  if (op == "move") return {{{"op", op}, {"from", path}, {"path", rest}}};
  json patch{{"op", op}, {"path", path}};
  if (!rest.empty()) patch["value"] = json::parse(rest);
  return json::array({patch});
}

TEST(Schema, RejectsEveryMistake) {
  for (const test::Mistake& mistake : test::kMistakes) {
    SCOPED_TRACE(mistake.what);
    json broken;
    // A patch that does not fit the full scenario any more must fail, not pass as a rejection.
    ASSERT_NO_THROW(broken = full_scenario().patch(patch_of(mistake.change)));
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
  json scenario = json::parse(test::kSmallScenario);
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
TEST(Schema, PartsAreWholeAndContainNothingElse) {
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
