#include "formats/input/document.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "formats/input/knobs.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/installed.h"
#include "formats/text/visible.h"

namespace syncline::input {
namespace {

namespace fs = std::filesystem;

// Returns the kind of file, by the key that only one kind has.
std::string_view kind_of(const Json& root) {
  if (root.contains("strategies")) return "a scenario";
  if (root.contains("tensors") || root.contains("operators")) return "a workload";
  if (root.contains("nodes") || root.contains("gpus_per_node") || root.contains("node")) {
    return "a cluster";
  }
  return {};
}

// Returns the names of JSON files in the folder of a missing file.
std::vector<std::string> names_beside(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path.parent_path().empty() ? "." : path.parent_path(), error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".json") names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns a hint: the path with ".json" added, or else names within a typo.
std::string nearest_file(const fs::path& path) {
  const auto names = names_beside(path);
  const std::string whole = path.filename().string() + ".json";
  const bool there = std::find(names.begin(), names.end(), whole) != names.end();
  return there ? " (did you mean '" + whole + "'?)" : did_you_mean(path.filename().string(), names);
}

// Merges a scenario's keys next to a file's name into the file's own object, as deep as both have
// objects. Adds the paths of these keys to `changed`.
void merge(const Json& overrides, const std::string& place, Json& object,
           std::vector<std::string>& changed) {
  Keyed members(object);
  for (const auto& [key, value] : overrides.items()) {
    const std::string path = place + "." + key;
    Json* known = members.find(key);
    // Keys next to a device's name change that device; an object with its own base is another one.
    const bool changes = value.is_object() && !(key == "device" && value.contains("base"));
    if (known != nullptr && changes && key == "device" && known->is_string()) {
      *known = Json{{"base", *known}};
    }
    if (known != nullptr && changes && known->is_object()) {
      merge(value, path, *known, changed);
      continue;
    }
    changed.push_back(path);
    members.set(key, value);
  }
}

// Replaces a file's name by its content: "cluster": "x.json", or "cluster": {"file": "x.json",
// "nodes": 8}, with keys that override the file's own (merge). Returns the file's path.
std::string put_in_place(Document& document, const std::string& key) {
  Json& root = document.root;
  const std::string& scenario_file = document.file;
  if (!root.is_object() || !root.contains(key)) return {};
  Json overrides = Json::object();
  Json name = root[key];
  if (name.is_object() && name.contains("file")) {
    overrides = name;
    overrides.erase("file");
    name = root[key]["file"];
  }
  if (name.is_object()) return {};
  if (!name.is_string()) {
    throw InputError(scenario_file + ": " + key + ": found " + describe(name) +
                     ", expected an object or the name of a file");
  }
  const fs::path named = name.get<std::string>();
  const fs::path path = named.is_absolute() ? named : fs::path(scenario_file).parent_path() / named;
  const std::string file = path.lexically_normal().string();
  try {
    root[key] = read_json_file(file);
  } catch (const InputMistakes& error) {
    throw InputMistakes(scenario_file + ": " + key + ": " + error.what(), error.below);
  } catch (const InputError& error) {
    std::error_code unknown;
    throw InputError(scenario_file + ": " + key + ": " + error.what() +
                     (fs::exists(fs::symlink_status(file, unknown)) ? "" : nearest_file(file)));
  }
  if (!root[key].is_object()) throw InputError(file + ": expected a JSON object");
  const std::string_view kind = kind_of(root[key]);
  if (!kind.empty() && kind != "a " + key) {
    throw InputError(scenario_file + ": " + key + ": " + file + " is " + std::string(kind) +
                     ", expected a " + key);
  }
  merge(overrides, key, root[key], document.changed);
  return file;
}

void resolve_part(Document& document, const std::string& key) {
  auto& file = key == "cluster" ? document.cluster_file : document.workload_file;
  file = put_in_place(document, key);
}

// Takes one step of a path: a key of an object, an index of a list, or a member's name.
Json* step_into(Json& node, const std::string& key) {
  if (node.is_object()) return node.contains(key) ? &node[key] : nullptr;
  if (!node.is_array()) return nullptr;
  for (auto& member : node) {
    if (member.is_object() && member.contains("name") && member["name"] == key) return &member;
  }
  if (!key.empty() && key.size() < 7 && std::all_of(key.begin(), key.end(), ::isdigit)) {
    const std::size_t index = std::stoul(key);
    if (index < node.size()) return &node[index];
  }
  return nullptr;
}

// Returns true for objects that a scenario may leave out: a path may create them.
bool may_be_left_out(const std::string& key) {
  static const std::set<std::string> objects{"device", "inter",    "intra",      "jitter",
                                             "nccl",   "training", "simulation", "learning_rate"};
  const auto& knobs = strategy_knobs().knobs;
  return objects.contains(key) || std::any_of(knobs.begin(), knobs.end(), [&](const auto& knob) {
           return knob.key == key && knob.schema.contains("$ref");
         });
}

std::vector<std::string> names_inside(const Json& node) {
  std::vector<std::string> names;
  if (node.is_object()) {
    for (const auto& [key, value] : node.items()) names.push_back(key);
  } else if (node.is_array()) {
    for (const auto& member : node) {
      if (member.is_object() && member.contains("name") && member["name"].is_string()) {
        names.push_back(member["name"].get<std::string>());
      }
    }
  }
  return names;
}

constexpr std::string_view kDefinitions = "#/definitions/";

// Collects the definitions that a piece of the schema refers to, directly or through others.
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

Document document_of(const std::string& name, Json root) {
  Document document{std::move(root), name, {}, {}, {}};
  for (const char* part : {"workload", "cluster"}) resolve_part(document, part);
  return document;
}

Document document_from_text(const std::string& name, const std::string& text) {
  return document_of(name, parse_json_text(name, text));
}

Document read_document(const std::string& path) {
  if (path == kStandardInput) {
    return document_from_text("standard input", read_standard_input());
  }
  const std::string found = scenario_path(path);
  return document_of(found, read_json_file(found));
}

void set_key(Document& document, const std::string& path, const Json& value) {
  Json* node = &document.root;
  std::stringstream parts(path);
  std::string part, walked;
  std::vector<std::string> keys;
  while (std::getline(parts, part, '.')) keys.push_back(part);
  if (keys.empty() || path.back() == '.') {
    throw InputError(document.file + ": path '" + shorten_text(path) + "' does not end in a key");
  }
  document.changed.push_back(path);
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    Json* next = step_into(*node, keys[i]);
    if (next == nullptr) {
      const auto names = names_inside(*node);
      if (node->is_object() && may_be_left_out(keys[i])) {
        (*node)[keys[i]] = Json::object();
        next = &(*node)[keys[i]];
      } else {
        throw InputError(document.file + ": path '" + shorten_text(path) + "': no '" +
                         shorten_text(keys[i]) + "'" + (walked.empty() ? "" : " in " + walked) +
                         did_you_mean(keys[i], names));
      }
    }
    // A device that is only a name becomes an object, for the key to change.
    if (next->is_string() && keys[i] == "device") *next = Json{{"base", *next}};
    walked += (walked.empty() ? "" : ".") + keys[i];
    node = next;
  }
  if (node->is_object()) {
    (*node)[keys.back()] = value;
    // A whole cluster or workload may be given by name here too.
    if (path == "workload" || path == "cluster") resolve_part(document, path);
    return;
  }
  Json* last = step_into(*node, keys.back());
  if (last == nullptr) {
    throw InputError(document.file + ": path '" + shorten_text(path) + "' does not lead to a key");
  }
  *last = value;
}

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
