// The reference of docs/scenario.md, made from the scenario's JSON schema: a section for each kind
// of object, a line for each key with what it takes and what it means.

#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace syncline {

// In Markdown, wrapped at 100 columns. The schema keeps its order of keys.
std::string scenario_reference(const nlohmann::ordered_json& schema);

}  // namespace syncline
