// A scenario as JSON, with the names of the files it came from.
// A file is read in two movements. `read_document` loads the JSON and puts referenced workload and
// cluster files in place; `parse_scenario` checks it strictly and gives typed
// values. Sweeps and calibration work on the document between the two, so that any key can be
// varied.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/json/json.h"
#include "formats/scenario/scenario.h"
#include "formats/scenario/search.h"

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

// The schema of a file that is a part of a scenario.

// What `schema`, that of scenarios, calls #/definitions/NAME, as a schema of its own: with those of
// the definitions that it refers to. Throws std::out_of_range (nlohmann) where there is none.
Json schema_part(const Json& schema, const std::string& name);

// The parts that are files, or are pasted, on their own; "scenario" is the whole.
const std::vector<std::string>& schema_parts();

// A document judged: every key of a scenario, with what it may be. Everything is in SI units once
// it has passed here.

// Checks every key and gives the typed scenario. Throws InputError.
Scenario parse_scenario(const Document& document);
// For what costs a job by itself: others on its fabric are refused.
Scenario parse_lone_scenario(const Document& document);

// The document's search; nothing where it has none. `scenario` is the document's.
std::optional<Search> parse_search(const Document& document, const Scenario& scenario);

}  // namespace syncline::input
