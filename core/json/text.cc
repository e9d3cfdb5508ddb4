#include "core/json/text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/json/syntax.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;

// The parser's own words for a number that no double holds, without its numbering.
std::string overflow_text(const std::string& text, std::string what) {
  const std::size_t open = what.find('\'');
  const std::size_t close = what.rfind('\'');
  if (open == std::string::npos || close <= open + 1) return "not valid JSON: " + what;
  const std::string number = what.substr(open + 1, close - open - 1);
  return "the number " + number + " at " + position_text(text, text.find(number) + 1) +
         " is too large";
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
    const bool behind_key =
        std::string_view(error.what()).find("expected ':'") != std::string::npos;
    if (const auto mistake = syntax_mistake(text, error.byte, behind_key)) {
      throw InputError(name + ": not valid JSON: " + *mistake);
    }
    std::string what = error.what();
    const auto colon = what.rfind("; ");
    what = colon != std::string::npos ? what.substr(colon + 2) : what;
    throw InputError(name + ": not valid JSON at " + position_text(text, error.byte) +
                     (error.byte >= text.size() ? " (the file ends too early)" : "") + ": " + what);
  } catch (const Json::exception& error) {
    throw InputError(name + ": " + overflow_text(text, error.what()));
  }
}

Json read_json_file(const std::string& path) {
  return parse_json_text(path, read_text_file(path, "a JSON file"));
}

std::string plain_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  // A whole cluster or workload goes by its name.
  if (value.is_object() && value.contains("name") && value["name"].is_string()) {
    return value["name"].get<std::string>();
  }
  return value.dump();
}

}  // namespace syncline
