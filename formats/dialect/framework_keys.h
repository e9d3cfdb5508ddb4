// The keys of frameworks, from their own packages (formats/dialect/keys/*.json, written by
// tests/frameworks/keys.py), with the effect of each here.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json/reader.h"

namespace syncline::dialect {

struct FrameworkKey {
  enum class Mark {
    kModelled,  // a reader evaluates it
    kHarmless,  // it changes no step
    kMatters,   // it changes a step, and nothing here evaluates it
  } mark = Mark::kMatters;
  Json usual;  // of one that matters: the framework's default; null: off

  // Says if a value changes a step though nothing evaluates it.
  bool is_ignored(const Json& value) const;
};

struct KeyList {
  std::string package;  // "DeepSpeed 0.19.8"
  std::map<std::string, FrameworkKey, std::less<>> keys;
  std::vector<std::string> removed;  // former keys, which that version refuses
};

// Returns the list of that name: "deepspeed.zero_optimization". Throws InternalError if there is
// none.
const KeyList& key_list(std::string_view name);
std::vector<std::string> key_list_names();

// Returns true if a value turns its key's effect off: false, 0, 1, "none" and the like.
bool says_off(const Json& value);

// Returns the keys that are given and matter, though nothing evaluates them: "a, b", each with the
// place in front of it.
std::string list_ignored_keys(const Json& config, const KeyList& list,
                              const std::string& place = "");

// Ends the reading of a configuration by its list of keys. Keys without effect are passed over,
// those that matter become one note, and a key that the framework does not have is refused.
void finish_keys(Reader& config, const KeyList& list, std::vector<std::string>& notes);

}  // namespace syncline::dialect
