// The lists in scenarios/schema.json are those of the program's tables: the keys of a strategy, and
// the names of what can be chosen. SYNCLINE_UPDATE_GOLDEN=1 writes them again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "catalogue/architectures/architecture.h"
#include "catalogue/hardware/device.h"
#include "core/codec.h"
#include "core/collective/nccl.h"
#include "core/fabric/kinds.h"
#include "formats/dialect/dialect.h"
#include "formats/input/knobs.h"
#include "formats/input/read_strategy.h"

namespace syncline {
namespace {

constexpr const char* kPath = SYNCLINE_SOURCE_DIR "/scenarios/schema.json";

Json stated_schema() {
  std::ifstream file(kPath);
  return Json::parse(file);
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

// Held against the file, or written into it.
void expect_stated(const Json& schema) {
  const Json stated = stated_schema();
  EXPECT_EQ(Json::diff(stated, schema).dump(), "[]") << "make it anew: SYNCLINE_UPDATE_GOLDEN=1";
  if (std::getenv("SYNCLINE_UPDATE_GOLDEN") != nullptr && stated != schema) {
    std::ofstream(kPath) << laid_out(schema, "", 0) << "\n";
  }
}

template <typename T>
void put_knobs(const input::KnobTable<T>& table, Json& definitions) {
  Json& properties = definitions.at(table.name).at("properties");
  for (const auto& knob : table.knobs) properties[knob.key] = plain(knob.schema);
}

// What a strategy may hold is said once, in the tables of formats/input/knobs.cc.
TEST(Schema, KnobsAreThoseOfTheTables) {
  Json schema = stated_schema();
  Json& definitions = schema["definitions"];
  put_knobs(input::strategy_knobs(), definitions);
  put_knobs(input::compute_fusion_knobs(), definitions);
  put_knobs(input::assumed_cost_knobs(), definitions);
  put_knobs(input::cuts_knobs(), definitions);
  put_knobs(input::fusion_knobs(), definitions);
  put_knobs(input::hierarchy_knobs(), definitions);
  put_knobs(input::compression_knobs(), definitions);
  put_knobs(input::outer_knobs(), definitions);
  put_knobs(input::fetch_knobs(), definitions);
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
  expect_stated(schema);
}

// A codec that nobody describes would be a word without a meaning.
TEST(Schema, DescribesEveryCodecOnce) {
  std::vector<std::string> described;
  for (const auto& words : input::codec_words()) {
    described.insert(described.end(), words.names.begin(), words.names.end());
  }
  std::vector<std::string> names = compress::codec_names();
  std::ranges::sort(described);
  std::ranges::sort(names);
  EXPECT_EQ(described, names);
}

template <typename Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

// A row more in a table is a word more in the schema.
TEST(Schema, ListsTheRowsOfEveryTable) {
  Json schema = stated_schema();
  Json& definitions = schema["definitions"];
  const auto put = [&](const char* place, const std::vector<std::string>& names) {
    definitions.at(Json::json_pointer(place)).at("enum") = names;
  };
  put("/algorithm", collective::algorithm_choices());
  put("/compression/properties/codec", compress::codec_names());
  put("/strategy/properties/dialect", dialect::dialect_names());
  put("/strategy/properties/preset", input::preset_names());
  put("/architecture/properties/architecture", operators::architecture_names());
  put("/device_name", names_of(hardware::devices()));
  put("/named_cluster/properties/node", names_of(hardware::nodes()));
  put("/fabric/properties/name", names_of(fabric::known_fabrics()));
  expect_stated(schema);
}

// What a search lists is what a strategy may say.
TEST(Schema, SearchesTakeTheWordsOfTheKnobs) {
  const Json definitions = stated_schema().at("definitions");
  const auto allowed_at = [&](const std::string& place) {
    return definitions.at(Json::json_pointer(place)).at("enum");
  };
  for (const std::string name : {"exchange", "priority"}) {
    EXPECT_EQ(allowed_at("/search/properties/" + name + "/items"),
              allowed_at("/strategy/properties/" + name));
  }
  EXPECT_EQ(allowed_at("/search/properties/fusion/properties/close/items"),
            allowed_at("/fusion/properties/close"));
}

}  // namespace
}  // namespace syncline
