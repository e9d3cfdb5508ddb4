#include "imports/frameworks/keys.h"

#include <algorithm>
#include <cctype>

#include "core/base/error.h"
#include "formats/dialect/framework_keys.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/visible.h"
#include "imports/frameworks/settings.h"

namespace syncline::job::frameworks {
namespace {

// Returns the value of "a.b.c" from `from`; nullptr if a part is not a key.
const Json* found_at(const Json& from, std::string path) {
  const Json* at = &from;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const auto next = at->is_object() ? at->find(path.substr(0, dot)) : at->end();
    if (!at->is_object() || next == at->end()) return nullptr;
    at = &*next;
    path.erase(0, std::min(dot + 1, path.size()));
  }
  return at;
}

// Returns a value without references. `around`: the mappings around it, the innermost last.
Json resolved(const Json& value, std::vector<const Json*>& around, int depth) {
  constexpr int kDeepestReferences = 8;
  if (value.is_object()) {
    Json all = Json::object();
    around.push_back(&value);
    for (const auto& [key, one] : value.items()) all[key] = resolved(one, around, depth);
    around.pop_back();
    return all;
  }
  if (!value.is_string() || around.empty() || depth > kDeepestReferences) return value;
  std::string path = value.get<std::string>();
  if (!path.starts_with("${") || path.find('}') + 1 != path.size()) return value;
  path = path.substr(2, path.size() - 3);
  std::size_t up = 0;
  while (up < path.size() && path[up] == '.') ++up;
  if (up > around.size() || path.find(':') != path.npos || path.size() == up) return value;
  const Json& from = up == 0 ? *around.front() : *around[around.size() - up];
  const Json* there = found_at(from, path.substr(up));
  if (there == nullptr || there->is_structured()) return value;
  return resolved(*there, around, depth + 1);
}

}  // namespace

bool has_value(const Json& all, const char* key) {
  const auto value = all.find(key);
  return value != all.end() && !value->is_null() && *value != "" && *value != Json::object() &&
         *value != Json::array();
}

std::string lower(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(letter));
  return text;
}

[[noreturn]] void fail(const std::string& file, const std::string& key, const std::string& what) {
  throw InputError(file + ": " + key + ": " + what);
}

bool Keys::on(const char* key, bool otherwise) const {
  if (!has_value(all, key)) return otherwise;
  const Json& value = all[key];
  if (value.is_boolean()) return value.get<bool>();
  const std::string word = value.is_string() ? lower(value.get<std::string>()) : value.dump();
  if (word == "true" || word == "yes" || word == "1") return true;
  if (word == "false" || word == "no" || word == "0" || word == "none" || word == "auto") {
    return false;
  }
  fail(file, key, "found '" + shorten_text(visible(word), 60) + "', expected true or false");
}

std::int64_t Keys::size(const char* key, std::int64_t otherwise) const {
  if (!has_value(all, key)) return otherwise;
  Json value = all[key];
  if (value.is_string()) value = number_or_text(value.get<std::string>());
  if (value == "auto" || value == "none" || value == "None") return otherwise;
  if (value == true) {
    fail(file, key,
         "has no value, as of a variable that is not set: set it where the script runs, or give "
         "the value to init (-- --" +
             std::string(key) + " N)");
  }
  if (!value.is_number_integer() || value < 1 || value > kMaxSamples) {
    fail(file, key,
         "found " + shorten_text(visible(value.dump()), 60) +
             ", expected a whole number from 1 to " + std::to_string(kMaxSamples));
  }
  return value.get<std::int64_t>();
}

std::string Keys::word(const char* key, const std::string& otherwise) const {
  if (!has_value(all, key)) return otherwise;
  const Json& value = all[key];
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string unread_keys(const Json& section, const std::string& place,
                        std::initializer_list<std::string> lists, const std::set<std::string>& read,
                        std::vector<std::string>& assumed) {
  std::string left;
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    const dialect::KeyList& known = dialect::key_list(list);
    const std::string own = dialect::list_ignored_keys(section, known, place + ".");
    if (!own.empty()) left += (left.empty() ? "" : ", ") + own;
    for (const auto& [name, key] : known.keys) names.push_back(name);
  }
  for (const auto& [key, value] : section.items()) {
    if (value.is_null() || read.contains(key) || std::ranges::find(names, key) != names.end()) {
      continue;
    }
    const std::string word = shorten_text(visible(key), 60);
    assumed.push_back("nothing of " + place + "." + word + ", which is not known" +
                      did_you_mean(word, names));
  }
  return left;
}

void name_unknown(const Json& section, const std::string& list, const std::string& framework,
                  std::vector<std::string>& assumed) {
  const auto& known = dialect::key_list(list).keys;
  std::vector<std::string> names;
  for (const auto& [name, key] : known) names.push_back(name);
  for (const auto& [key, value] : section.items()) {
    if (value.is_null() || known.contains(key)) continue;
    const std::string word = shorten_text(visible(key), 60);
    assumed.push_back("nothing of " + word + ", which " + framework + " does not know" +
                      did_you_mean(word, names));
  }
}

void expect_known(const Json& section, const std::string& list, const std::string& framework,
                  const std::string& file) {
  const auto& known = dialect::key_list(list).keys;
  const auto is_known = [&](const auto& each) { return known.contains(each.key()); };
  const auto items = section.items();
  if (section.empty() || std::any_of(items.begin(), items.end(), is_known)) return;
  const std::string first = shorten_text(visible(section.begin().key()), 60);
  throw InputError(file + ": " + framework + " knows none of its keys: found " + first +
                   ", expected its own, such as zero_optimization");
}

Json with_references(const Json& all) {
  std::vector<const Json*> around;
  return resolved(all, around, 0);
}

}  // namespace syncline::job::frameworks
