// YAML, TOML and XML, as other programs write them, read as JSON (yaml-cpp, toml++, expat). Of YAML
// the first document, its words as Python's reader takes them: yes and off are true and false.
// Throws InputError naming file and line, also for repeated keys, more than 64 levels, 20,000 lines
// and 100,000 values.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/json/json.h"

namespace syncline {

// `name` stands for the file in messages.
Json parse_yaml(const std::string& name, const std::string& text);
Json parse_toml(const std::string& name, const std::string& text);

// {"tag": ..., "attributes": {name: text}, "inside": [elements]}; what text is between them is not.
Json parse_xml(const std::string& name, const std::string& text);

// A number as settings and command lines write it ("1_000", "5e-1", "-3"); a string where it is
// none.
Json number_or_text(std::string_view word);

}  // namespace syncline
