// A scenario as JSON, with the names of the files it came from.
// A file is read in two movements. `read_document` loads the JSON and puts referenced workload and
// cluster files in place; `parse_scenario` (read_scenario.h) checks it strictly and gives typed
// values. Sweeps and calibration work on the document between the two, so that any key can be
// varied.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/json/json.h"

namespace syncline::input {

struct Document {
  Json root;
  std::string file;
  std::string workload_file;  // empty when the workload stands in the scenario itself
  std::string cluster_file;
  // Dotted paths of keys inside those files' objects that the scenario gave itself.
  std::vector<std::string> changed;
};

// The path that stands for standard input: files that are named there are taken from the current
// directory.
inline constexpr std::string_view kStandardInput = "-";

// Loads `path` and the files it refers to. Throws InputError for a missing, cut, huge or malformed
// file and for repeated keys.
Document read_document(const std::string& path);

// The same of JSON and of text; `name` stands for the file in messages, and relative references are
// taken from its folder.
Document document_of(const std::string& name, Json root);
Document document_from_text(const std::string& name, const std::string& text);

// Sets the key at a dotted path ("cluster.inter.latency_us", "strategies.dgc.streams").
// Throws InputError when the path leads through something that does not exist.
void set_key(Document& document, const std::string& path, const Json& value);

}  // namespace syncline::input
