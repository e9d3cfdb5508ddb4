#include "formats/launch/launch.h"

#include <algorithm>

#include "core/base/error.h"
#include "formats/json/reader.h"
#include "formats/text/visible.h"

namespace syncline::launch {
namespace {

constexpr const char* kLaunches = "launches";

std::vector<std::string> words_at(const Json& json, const std::string& key,
                                  const std::string& file) {
  const auto found = json.find(key);
  if (found == json.end()) return {};
  if (found->is_array() && std::ranges::all_of(*found, &Json::is_string)) {
    return found->get<std::vector<std::string>>();
  }
  throw InputError(file + ": " + key + ": expected a list of words");
}

std::map<std::string, std::string> texts_at(const Json& json, const std::string& key,
                                            const std::string& file) {
  const auto found = json.find(key);
  if (found == json.end()) return {};
  if (found->is_object() && std::ranges::all_of(*found, &Json::is_string)) {
    return found->get<std::map<std::string, std::string>>();
  }
  throw InputError(file + ": " + key + ": expected texts by their names");
}

}  // namespace

bool is_capture(const Json& json) {
  const auto found = json.is_object() ? json.find(kLaunches) : json.end();
  return json.is_object() && found != json.end() && found->is_array() && !found->empty() &&
         found->front().is_object() && found->front().contains("words");
}

Json json_of(const std::vector<CapturedLaunch>& launches) {
  Json all = Json::array();
  for (const CapturedLaunch& one : launches) {
    Json json{{"words", one.words}, {"folder", one.folder}};
    if (!one.around.empty()) json["around"] = one.around;
    if (!one.environment.empty()) json["environment"] = one.environment;
    if (!one.files.empty()) json["files"] = one.files;
    all.push_back(std::move(json));
  }
  return {{kLaunches, std::move(all)}};
}

std::vector<CapturedLaunch> launches_of(const Json& json, const std::string& file) {
  std::vector<CapturedLaunch> launches;
  for (const Json& one : json[kLaunches]) {
    if (!one.is_object()) throw InputError(file + ": launches: expected a list of objects");
    CapturedLaunch launch;
    launch.words = words_at(one, "words", file);
    launch.around = words_at(one, "around", file);
    launch.environment = texts_at(one, "environment", file);
    launch.files = texts_at(one, "files", file);
    if (const auto folder = one.find("folder"); folder != one.end() && folder->is_string()) {
      launch.folder = folder->get<std::string>();
    }
    launches.push_back(std::move(launch));
  }
  return launches;
}

std::string line_of(const CapturedLaunch& launch, std::size_t most) {
  std::string line;
  for (const std::vector<std::string>& words : {launch.around, launch.words}) {
    for (const std::string& word : words) {
      if (line.size() <= most) line += (line.empty() ? "" : " ") + word;
    }
  }
  return shorten_text(visible(line), most);
}

}  // namespace syncline::launch
