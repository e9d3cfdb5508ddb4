#include "core/input/schema_part.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace syncline::input {
namespace {

constexpr std::string_view kDefinitions = "#/definitions/";

// The definitions that a piece of the schema refers to, directly or through others.
void collect(const Json& schema, const Json& piece, std::set<std::string>& names) {
  if (piece.is_array()) {
    for (const Json& element : piece) collect(schema, element, names);
  }
  if (!piece.is_object()) return;
  for (const auto& [key, value] : piece.items()) {
    if (key != "$ref" || !value.is_string()) {
      collect(schema, value, names);
      continue;
    }
    const std::string name = value.get<std::string>().substr(kDefinitions.size());
    if (names.insert(name).second) collect(schema, schema.at("definitions").at(name), names);
  }
}

}  // namespace

Json schema_part(const Json& schema, const std::string& name) {
  const Json& part = schema.at("definitions").at(name);
  std::set<std::string> names;
  collect(schema, part, names);
  Json whole = {{"$schema", schema.at("$schema")}};
  whole.update(part);
  Json& definitions = whole["definitions"] = Json::object();
  for (const auto& [key, definition] : schema.at("definitions").items()) {
    if (names.contains(key)) definitions[key] = definition;
  }
  return whole;
}

const std::vector<std::string>& schema_parts() {
  static const std::vector<std::string> kParts{"scenario", "workload", "cluster", "strategy"};
  return kParts;
}

}  // namespace syncline::input
