// The reference of docs/keys.md, made from the scenario's JSON schema: a section for each kind
// of object, a line for each key with what it takes and what it means.

#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace syncline::reference {

using Schema = nlohmann::ordered_json;

constexpr std::size_t kColumns = 100;

// Words of a paragraph on lines of at most 100 columns, the first behind `start`, the others behind
// as many spaces as `indent` says.
inline std::string wrapped(const std::string& start, std::size_t indent, const std::string& text) {
  std::istringstream words(text);
  std::string line = start, lines;
  bool first = true;
  for (std::string word; words >> word;) {
    if (!first && line.size() + 1 + word.size() > kColumns) {
      lines += line + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += (first ? "" : " ") + word;
    }
    first = false;
  }
  return lines + line + "\n";
}

inline std::string code(const std::string& word) { return "`" + word + "`"; }

// "a", "a or b", "a, b or c".
inline std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " or " : ", ";
    text += items[i];
  }
  return text;
}

inline std::string bounds_of(const Schema& number) {
  const auto bound = [&](const char* key) { return number.at(key).dump(); };
  if (number.contains("minimum") && number.contains("maximum"))
    return ", " + bound("minimum") + " to " + bound("maximum");
  std::string text;
  if (number.contains("minimum")) text += ", at least " + bound("minimum");
  if (number.contains("exclusiveMinimum")) text += ", above " + bound("exclusiveMinimum");
  if (number.contains("maximum")) text += ", at most " + bound("maximum");
  if (number.contains("exclusiveMaximum")) text += ", below " + bound("exclusiveMaximum");
  return text;
}

class Reference {
 public:
  explicit Reference(const Schema& schema) : schema_(schema) {}

  std::string text() const {
    std::string page = section("scenario", schema_);
    for (const auto& [name, definition] : schema_.at("definitions").items())
      if (has_section(definition)) page += "\n" + section(name, definition);
    return page;
  }

 private:
  // Objects have sections; numbers and words are described where they stand.
  static bool has_section(const Schema& definition) { return definition.contains("properties"); }

  static std::string name_of(const Schema& reference) {
    const auto path = reference.at("$ref").get<std::string>();
    return path.substr(path.rfind('/') + 1);
  }

  const Schema& target_of(const Schema& reference) const {
    return schema_.at(Schema::json_pointer(reference.at("$ref").get<std::string>().substr(1)));
  }

  // The object whose key this one is, if it is described there: #/definitions/OWNER/properties/KEY.
  static std::string owner_of(const Schema& key) {
    const auto path = key.value("$ref", std::string());
    const auto end = path.find("/properties/");
    if (end == std::string::npos) return "";
    const auto begin = path.rfind('/', end - 1) + 1;
    return path.substr(begin, end - begin);
  }

  // What a key may hold, in words.
  std::string kind_of(const Schema& key) const {
    if (key.contains("$ref")) {
      const Schema& target = target_of(key);
      if (!has_section(target)) return kind_of(target);
      return "[" + name_of(key) + "](#" + name_of(key) + ")";
    }
    for (const char* choice : {"oneOf", "anyOf", "allOf"}) {
      if (key.contains("properties") || !key.contains(choice)) continue;
      std::vector<std::string> kinds;
      for (const auto& one : key.at(choice)) kinds.push_back(kind_of(one));
      return listed(kinds);
    }
    if (key.contains("enum")) {
      // Names of a long table: `syncline list` prints them.
      constexpr std::size_t kMax = 20;
      if (key.at("enum").size() > kMax) {
        return "one of " + std::to_string(key.at("enum").size()) + " names";
      }
      std::vector<std::string> words;
      for (const auto& word : key.at("enum")) words.push_back(code(word.get<std::string>()));
      return listed(words);
    }
    return plain_kind_of(key);
  }

  std::string plain_kind_of(const Schema& key) const {
    if (key.at("type").is_array()) {  // a number, or the word that its pattern is
      Schema number = key;
      number["type"] = key.at("type")[0];
      const auto word = key.at("pattern").get<std::string>();
      return listed({plain_kind_of(number), code(word.substr(1, word.size() - 2))});
    }
    const auto type = key.at("type").get<std::string>();
    if (type == "boolean") return "true or false";
    if (type == "string") return "text";
    if (type == "integer" || type == "number") return type + bounds_of(key);
    if (type == "object") {
      const Schema others = key.value("additionalProperties", Schema());
      return others.is_object() ? "object of " + kind_of(others) : type;
    }
    if (!key.contains("items")) return "list";
    if (key.at("items").is_object()) return "list of " + kind_of(key.at("items"));
    std::string places;  // a list of so many, each of a kind of its own
    for (const auto& place : key.at("items"))
      places += (places.empty() ? "" : ", ") + place.at("type").get<std::string>();
    return "[" + places + "]";
  }

  std::string meaning_of(const Schema& key) const {
    if (!key.contains("description"))
      return key.contains("$ref") ? meaning_of(target_of(key)) : std::string();
    // A definition is a section of this page.
    return std::regex_replace(key.at("description").get<std::string>(),
                              std::regex("#/definitions/(\\w+)"), "[$1](#$1)");
  }

  std::string keys_of(const Schema& object, std::size_t depth) const {
    const Schema required = object.value("required", Schema::array());
    std::string text, owner;
    for (const auto& [name, key] : object.at("properties").items()) {
      if (owner_of(key) != "") {
        owner = owner_of(key);
        continue;
      }
      const bool must = std::find(required.begin(), required.end(), name) != required.end();
      const std::string kind = kind_of(key) + (must ? "; required" : "");
      text += wrapped(std::string(2 * depth, ' ') + "- ", 2 * depth + 2,
                      "**" + code(name) + "** (" + kind + "): " + meaning_of(key));
      const Schema& inside = key.contains("items") ? key.at("items") : key;
      if (inside.contains("properties")) text += keys_of(inside, depth + 1);
    }
    if (owner != "")
      text += "- any key of [" + owner + "](#" + owner + "), which replaces the file's\n";
    return text;
  }

  // Which keys stand together, and of which one must be there.
  static std::string conditions_of(const Schema& object) {
    std::vector<std::string> choices;
    for (const auto& one : object.value("anyOf", Schema::array()))
      for (const auto& name : one.at("required")) choices.push_back(code(name.get<std::string>()));
    std::string text;
    if (!choices.empty()) text += "Must have " + listed(choices) + ". ";
    const Schema dependencies = object.value("dependencies", Schema::object());
    for (const auto& [name, needed] : dependencies.items()) {
      std::vector<std::string> others;
      for (const auto& other : needed) others.push_back(code(other.get<std::string>()));
      text += code(name) + " needs " + listed(others) + ". ";
    }
    return text;
  }

  std::string section(const std::string& name, const Schema& object) const {
    std::string text = "## " + name + "\n\n";
    text += wrapped("", 0, meaning_of(object));
    const std::string conditions = conditions_of(object);
    if (!conditions.empty()) text += "\n" + wrapped("", 0, conditions);
    return text + "\n" + keys_of(object, 0);
  }

  const Schema& schema_;
};

// In Markdown, wrapped at 100 columns. The schema keeps its order of keys.
inline std::string of_schema(const Schema& schema) { return Reference(schema).text(); }

}  // namespace syncline::reference
