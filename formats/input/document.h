// A scenario as JSON, with the names of the files it came from. A file is read in two steps:
// `read_document` loads the JSON and inserts referenced workload and cluster files;
// `parse_scenario` checks it strictly and returns typed values. Sweeps and calibration change the
// document between the two, so that any key can be varied.
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
  std::string workload_file;  // empty: the workload is in the scenario itself
  std::string cluster_file;
  // Dotted paths of keys inside those files' objects that the scenario itself sets.
  std::vector<std::string> changed;
};

// The path of standard input: files that it refers to are taken from the current directory.
inline constexpr std::string_view kStandardInput = "-";

// Loads `path` and the files it refers to. Throws InputError for a missing, cut, huge or malformed
// file and for repeated keys.
Document read_document(const std::string& path);

// Does the same for JSON and for text. Messages call the file `name`; relative references are taken
// from its folder.
Document document_of(const std::string& name, Json root);
Document document_from_text(const std::string& name, const std::string& text);

// Sets the key at a dotted path ("cluster.inter.latency_us", "strategies.dgc.streams"). Throws
// InputError if the path leads through a missing part.
void set_key(Document& document, const std::string& path, const Json& value);

// The schema of a file that is a part of a scenario.

// Returns #/definitions/NAME of `schema`, that of scenarios, as a schema of its own, with the
// definitions that it refers to. Throws std::out_of_range (nlohmann) if it is missing.
Json schema_part(const Json& schema, const std::string& name);

// Returns the parts that are files, or are pasted, on their own; "scenario" is the whole.
const std::vector<std::string>& schema_parts();

// The strict check of a document: every key of a scenario, with its limits. All values are in SI
// units from here on.

// Checks every key and returns the typed scenario. Throws InputError.
Scenario parse_scenario(const Document& document);
// Does the same for callers that cost a job by itself: refuses other jobs on its fabric.
Scenario parse_lone_scenario(const Document& document);

// Returns the document's search; nullopt: it has none. `scenario` is the document's.
std::optional<Search> parse_search(const Document& document, const Scenario& scenario);

}  // namespace syncline::input
