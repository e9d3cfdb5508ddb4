#include "formats/dialect/framework_keys.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/internal_error.h"
#include "formats/dialect/dialect.h"
#include "formats/json/text.h"

namespace syncline::dialect {

// Returns the files of formats/dialect/keys; the build makes it.
std::vector<std::string_view> key_files();

namespace {

using Lists = std::map<std::string, KeyList, std::less<>>;

Lists read_lists() {
  using Mark = FrameworkKey::Mark;
  constexpr std::pair<const char*, Mark> kEvaluated[]{{"modelled", Mark::kModelled},
                                                      {"harmless", Mark::kHarmless}};
  Lists lists;
  for (const std::string_view text : key_files()) {
    const Json file = Json::parse(text);
    const std::string package =
        file.at("framework").get<std::string>() + " " + file.at("version").get<std::string>();
    for (const auto& [name, marked] : file.at("lists").items()) {
      KeyList& list = lists[name];
      list.package = package;
      for (const auto& [word, mark] : kEvaluated) {
        for (const Json& key : marked.at(word)) {
          list.keys.emplace(key.get<std::string>(), FrameworkKey{mark, nullptr});
        }
      }
      for (const auto& [key, usual] : marked.at("matters").items()) {
        list.keys.emplace(key, FrameworkKey{Mark::kMatters, usual});
      }
      list.removed = marked.value("removed", std::vector<std::string>());
    }
  }
  return lists;
}

const Lists& all_lists() {
  static const Lists lists = read_lists();
  return lists;
}

}  // namespace

bool FrameworkKey::is_ignored(const Json& value) const {
  if (mark != Mark::kMatters || value.is_null()) return false;
  const bool off = usual.is_null() || usual == false;
  return off ? !says_off(value) : value != usual;
}

const KeyList& key_list(std::string_view name) {
  const auto found = all_lists().find(name);
  if (found == all_lists().end())
    throw InternalError("no list of keys '" + std::string(name) + "'");
  return found->second;
}

std::vector<std::string> key_list_names() {
  std::vector<std::string> names;
  for (const auto& [name, list] : all_lists()) names.push_back(name);
  return names;
}

bool says_off(const Json& value) {
  constexpr std::string_view kOff[]{"", "none", "None", "auto", "no", "NO"};
  if (value.is_structured()) return std::all_of(value.begin(), value.end(), says_off);
  if (value.is_number()) return value <= 1;
  if (!value.is_string()) return value.is_null() || value == false;
  return std::ranges::find(kOff, value.get_ref<const std::string&>()) != std::end(kOff);
}

std::string list_ignored_keys(const Json& config, const KeyList& list, const std::string& place) {
  std::string keys;
  for (const auto& [key, value] : config.items()) {
    const auto known = list.keys.find(key);
    if (known == list.keys.end() || !known->second.is_ignored(value)) continue;
    keys += (keys.empty() ? "" : ", ") + place + key;
  }
  return keys;
}

void finish_keys(Reader& config, const KeyList& list, std::vector<std::string>& notes) {
  using Mark = FrameworkKey::Mark;
  bool strange = false;
  std::string removed;
  for (const auto& [key, value] : config.json().items()) {
    const auto known = list.keys.find(key);
    strange = strange || known == list.keys.end();
    if (std::ranges::find(list.removed, key) != list.removed.end()) {
      removed += (removed.empty() ? "" : ", ") + key;
    }
    const bool left = known != list.keys.end() && known->second.mark != Mark::kModelled;
    if (left) config.find(key);
  }
  const std::string out = list_ignored_keys(config.json(), list);
  note(notes, {{!out.empty(), "nothing gained or lost by what is not modelled: " + out},
               {!removed.empty(), list.package + " has no longer, and refuses: " + removed}});
  // Looks up all keys of the framework, so that a misspelt key can be taken for any of them.
  for (const auto& [key, unused] : list.keys) {
    if (strange && !config.json().contains(key)) config.find(key);
  }
  config.finish();
}

}  // namespace syncline::dialect
