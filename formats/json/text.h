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
// The same from text; `name` stands for the file in messages.
Json parse_json_text(const std::string& name, const std::string& text);
// The value that a text is, or nothing where it is no JSON or nested deeper than kDeepest.
std::optional<Json> json_in(const std::string& text);

// Finds members of an object by key in constant time; the object itself compares all keys.
// REQUIRES: nothing else adds members meanwhile.
class Keyed {
 public:
  explicit Keyed(Json& object);
  Json* find(const std::string& key);
  // Sets the member of that key, or appends one.
  Json& set(const std::string& key, Json value);

 private:
  std::vector<Json::object_t::value_type>& members_;
  std::unordered_map<std::string, std::size_t> places_;
};

// "100", "0.5", "ring": a value as a person writes it; an object with a name goes by that.
std::string plain_text(const Json& value);

// YAML, TOML and XML, as other programs write them, read as JSON (yaml-cpp, toml++, expat). Of YAML
// the first document, its words as Python's reader takes them: yes and off are true and false. Of
// XML no DOCTYPE that declares anything. Throws InputError naming file and line, also for repeated
// keys, and for more levels, lines and values than formats/text/limits.h has.

// `name` stands for the file in messages.
Json parse_yaml(const std::string& name, const std::string& text);
Json parse_toml(const std::string& name, const std::string& text);

// {"tag": ..., "attributes": {name: text}, "inside": [elements]}; what text is between them is not.
Json parse_xml(const std::string& name, const std::string& text);

// A number as settings and command lines write it ("1_000", "5e-1", "-3"); a string where it is
// none.
Json number_or_text(std::string_view word);

}  // namespace syncline
