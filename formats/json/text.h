// Files and texts that hold one JSON value, read strictly. Every message names the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/json/json.h"
#include "formats/text/files.h"
#include "formats/text/limits.h"

namespace syncline {

// Reads one JSON file strictly: at most kLargestFile bytes, no repeated keys, nothing after the
// end, at most kDeepest levels. Throws InputError.
Json read_json_file(const std::string& path);
// Does the same for text. Messages call the file `name`.
Json parse_json_text(const std::string& name, const std::string& text);
// Returns the value of a text; nullopt if it is no JSON or nested deeper than kDeepest.
std::optional<Json> try_parse_json(const std::string& text);

// Finds members of an object by key in constant time; the object itself compares all keys. Requires
// that all new members are added through it.
class Keyed {
 public:
  explicit Keyed(Json& object);
  Json* find(const std::string& key);
  // Sets the member of that key, or appends it.
  Json& set(const std::string& key, Json value);

 private:
  std::vector<Json::object_t::value_type>& members_;
  std::unordered_map<std::string, std::size_t> places_;
};

// Throws InputError if an object of these settings has more than kMaxKeys: who reads settings
// looks keys up among all others, again and again.
void expect_few_keys(const std::string& name, const Json& settings);

// Returns a value as a person writes it: "100", "0.5", "ring"; for an object, its name.
std::string plain_text(const Json& value);

// YAML, TOML and XML of other programs, read as JSON (yaml-cpp, toml++, expat). YAML: the first
// document, with words as Python's reader takes them: yes and off are true and false. XML: no
// DOCTYPE with declarations. Throws InputError with file and line, also for repeated keys, and
// above the limits of formats/text/limits.h (levels, lines, values, keys).

// Parses a text; messages call the file `name`.
Json parse_yaml(const std::string& name, const std::string& text);
Json parse_toml(const std::string& name, const std::string& text);

// Returns {"tag": ..., "attributes": {name: text}, "inside": [elements]}; drops text between them.
Json parse_xml(const std::string& name, const std::string& text);

// Returns a number as settings and command lines write it ("1_000", "5e-1", "-3"), or else a
// string.
Json number_or_text(std::string_view word);

}  // namespace syncline
