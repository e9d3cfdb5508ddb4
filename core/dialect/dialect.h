// Dialects: a framework's own configuration, read verbatim into a strategy that reproduces that
// framework's exact rules. Each dialect lives in a file of its own and is one row here.
//
// In a scenario a strategy is written in a dialect as
//   {"name": "...", "dialect": "paddle", "config": {...}, "read_as": "code"}
// where `config` holds the framework's keys and nothing else.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/reader.h"
#include "core/scenario/scenario.h"

namespace syncline {

// A configuration as understood on this workload and cluster.
struct Reading {
  Strategy strategy;  // `name` is filled in by the caller
  // One line each: what the framework silently does otherwise than the configuration (or its
  // documentation) says. `syncline check` prints them.
  std::vector<std::string> notes;
};

struct Dialect {
  std::string_view name;
  std::string_view summary;  // one line for `syncline list`
  // Reads every key of `config` or fails with the framework's own rule in the message.
  // `as_documents`: where documentation and code differ, follow the documentation.
  Reading (*read)(Reader config, const Workload&, const Cluster&, bool as_documents);
};

std::span<const Dialect> dialects();
const Dialect* find_dialect(std::string_view name);  // or nullptr
std::vector<std::string> dialect_names();

}  // namespace syncline
