#include "core/scenario/document.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/scenario/reader.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;

// "line 3, column 7" of a byte offset.
std::string position_text(const std::string& text, std::size_t byte) {
  const std::size_t end = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  const std::size_t last = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const std::size_t column = last == std::string::npos ? end + 1 : end - last;
  return "line " + std::to_string(line + 1) + ", column " + std::to_string(column);
}

// Puts a workload or cluster file in place of its name: "cluster": "x.json", or
// "cluster": {"file": "x.json", "nodes": 8}, where the other keys replace the file's own.
// Gives the file's path.
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
  } catch (const InputError& error) {
    throw InputError(scenario_file + ": " + key + ": " + error.what());
  }
  if (!root[key].is_object()) throw InputError(file + ": expected a JSON object");
  for (const auto& [changed, value] : overrides.items()) {
    root[key][changed] = value;
    document.changed.push_back(key + "." + changed);
  }
  return file;
}

void resolve_part(Document& document, const std::string& key) {
  auto& file = key == "cluster" ? document.cluster_file : document.workload_file;
  file = put_in_place(document, key);
}

void resolve(Document& document) {
  resolve_part(document, "workload");
  resolve_part(document, "cluster");
}

// One step along a path: a key of an object, an index of a list, or the name of one of its members.
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

// Objects that a scenario may leave out: a path may open them.
bool may_be_left_out(const std::string& key) {
  static const std::vector<std::string> objects{
      "device",    "fusion",     "hierarchy",   "inter",    "intra",         "jitter",
      "local_sgd", "simulation", "compression", "training", "learning_rate", "compute_fusion"};
  return std::find(objects.begin(), objects.end(), key) != objects.end();
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

}  // namespace

std::string read_text_file(const std::string& path, std::string_view kind) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw InputError(path + ": no such file");
  if (fs::is_directory(status))
    throw InputError(path + ": is a folder, expected " + std::string(kind));
  if (fs::is_regular_file(status)) {
    const auto size = fs::file_size(path, error);
    if (!error && size > static_cast<std::uintmax_t>(kLargestFile)) {
      throw InputError(path + ": " + std::to_string(size >> 20) + " MiB, expected at most " +
                       std::to_string(kLargestFile >> 20) + " MiB");
    }
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path + ": cannot be opened for reading");
  // A pipe or a device has no size beforehand: read no more than the limit.
  std::string text;
  char block[1 << 16];
  while (in.read(block, sizeof block) || in.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(in.gcount()));
    if (static_cast<long long>(text.size()) > kLargestFile) {
      throw InputError(path + ": more than " + std::to_string(kLargestFile >> 20) + " MiB");
    }
  }
  return text;
}

Json parse_json_text(const std::string& name, const std::string& text) {
  // The parser keeps the last of repeated keys in silence; a second key is somebody's mistake.
  std::vector<std::vector<std::string>> open_objects;
  std::string repeated;
  // nlohmann's parser recurses into values on destruction, so bound the depth as well.
  constexpr int kDeepest = 64;
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > kDeepest) too_deep = true;
    if (event == Event::object_start) open_objects.emplace_back();
    if (event == Event::object_end && !open_objects.empty()) open_objects.pop_back();
    if (event == Event::key && !open_objects.empty()) {
      auto& keys = open_objects.back();
      auto key = parsed.get<std::string>();
      if (std::find(keys.begin(), keys.end(), key) != keys.end() && repeated.empty()) {
        repeated = key;
      }
      keys.push_back(std::move(key));
    }
    return !too_deep;
  };
  try {
    Json root = Json::parse(text, watch);
    if (too_deep) throw InputError(name + ": nested more than 64 levels deep");
    if (!repeated.empty()) throw InputError(name + ": key '" + repeated + "' is given twice");
    return root;
  } catch (const Json::parse_error& error) {
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
      throw InputError(name + ": empty file, expected a JSON object");
    }
    std::string what = error.what();
    const auto colon = what.rfind("; ");
    what = colon != std::string::npos ? what.substr(colon + 2) : what;
    throw InputError(name + ": not valid JSON at " + position_text(text, error.byte) +
                     (error.byte >= text.size() ? " (the file ends too early)" : "") + ": " + what);
  } catch (const Json::exception& error) {
    throw InputError(name + ": not valid JSON: " + error.what());
  }
}

Json read_json_file(const std::string& path) {
  return parse_json_text(path, read_text_file(path, "a JSON file"));
}

Document read_document(const std::string& path) {
  Document document{read_json_file(path), path, {}, {}, {}};
  resolve(document);
  return document;
}

Document document_from_text(const std::string& name, const std::string& text) {
  Document document{parse_json_text(name, text), name, {}, {}, {}};
  resolve(document);
  return document;
}

void set_key(Document& document, const std::string& path, const Json& value) {
  Json* node = &document.root;
  std::stringstream parts(path);
  std::string part, walked;
  std::vector<std::string> keys;
  while (std::getline(parts, part, '.')) keys.push_back(part);
  if (keys.empty() || path.back() == '.') {
    throw InputError(document.file + ": path '" + path + "' does not end in a key");
  }
  document.changed.push_back(path);
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    Json* next = step_into(*node, keys[i]);
    if (next == nullptr) {
      const auto names = names_inside(*node);
      const auto near = nearest_word(keys[i], names);
      if (node->is_object() && may_be_left_out(keys[i])) {
        (*node)[keys[i]] = Json::object();
        next = &(*node)[keys[i]];
      } else {
        throw InputError(document.file + ": path '" + path + "': no '" + keys[i] + "'" +
                         (walked.empty() ? "" : " in " + walked) +
                         (near ? " (did you mean '" + *near + "'?)" : ""));
      }
    }
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
    throw InputError(document.file + ": path '" + path + "' does not lead to a key");
  }
  *last = value;
}

}  // namespace syncline
