// Configurations of frameworks as the dialects read them, for the tests of dialects.
#pragma once

#include <algorithm>
#include <string>

#include "core/dialect/dialect.h"
#include "core/input/document.h"
#include "core/json/reader.h"
#include "core/json/text.h"

namespace syncline::test {

// Messages about this configuration begin with "x.json: c".
inline dialect::Reading read_config(const dialect::Dialect& dialect, const std::string& config,
                                    const Workload& workload, const Cluster& cluster,
                                    bool as_documents = false) {
  const Json json = parse_json_text("x.json", config);
  return dialect.read(Reader(json, "x.json", "c"), workload, cluster, as_documents);
}

inline bool has_note(const dialect::Reading& reading, const std::string& part) {
  return std::any_of(reading.notes.begin(), reading.notes.end(),
                     [&](const auto& note) { return note.find(part) != std::string::npos; });
}

}  // namespace syncline::test
