// Keys of a framework's settings, read as Python would: words for true and false count, as in flags
// and quoted YAML.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "formats/json/json.h"

namespace syncline::job::frameworks {

// Returns true if a key has a value that is neither null nor empty.
bool has_value(const Json& all, const char* key);

std::string lower(std::string text);

// Throws InputError about a file's key.
[[noreturn]] void fail(const std::string& file, const std::string& key, const std::string& what);

struct Keys {
  const Json& all;
  const std::string& file;

  bool on(const char* key, bool otherwise = false) const;
  // Returns an integer, also from quotes; `otherwise` if it is not given or "auto".
  std::int64_t size(const char* key, std::int64_t otherwise) const;
  std::string word(const char* key, const std::string& otherwise = "") const;
};

// Returns the keys of a section that change a step, by the package's own lists of these names,
// though nothing evaluates them: "compile.enable, float8.recipe_name". Adds to `assumed` those that
// no list has and nobody has read.
std::string unread_keys(const Json& section, const std::string& place,
                        std::initializer_list<std::string> lists, const std::set<std::string>& read,
                        std::vector<std::string>& assumed);

// Names the keys of a section that a framework's list does not have: the framework does not know
// them.
void name_unknown(const Json& section, const std::string& list, const std::string& framework,
                  std::vector<std::string>& assumed);

// Throws InputError about the file if a framework's list has none of a section's keys: it is
// another program's.
void expect_known(const Json& section, const std::string& list, const std::string& framework,
                  const std::string& file);

// Replaces references by their values: "${model.seq_length}", "${.hidden_size}", as OmegaConf does.
// Leaves those that it cannot resolve.
Json with_references(const Json& all);

}  // namespace syncline::job::frameworks
