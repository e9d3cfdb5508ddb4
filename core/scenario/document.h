// A scenario as JSON, with the names of the files it came from.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.h"

namespace syncline {

struct Document {
  Json root;
  std::string file;
  std::string workload_file;  // empty when the workload stands in the scenario itself
  std::string cluster_file;
  // Dotted paths of keys inside those files' objects that the scenario gave itself.
  std::vector<std::string> changed;
};

// The whole file, at most kLargestFile bytes; `kind` says in messages what was expected ("a JSON
// file").
std::string read_text_file(const std::string& path, std::string_view kind);

// Reads one JSON file strictly: at most kLargestFile bytes, no repeated keys, nothing after the
// end.
Json read_json_file(const std::string& path);
Json parse_json_text(const std::string& name, const std::string& text);

inline constexpr long long kLargestFile = 64ll << 20;

}  // namespace syncline
