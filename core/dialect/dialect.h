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

#include "core/json/reader.h"
#include "core/plan/plan.h"
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
  // Configurations that may come to this strategy, whose buckets on this workload are given, the
  // likeliest first; write.h tries them. nullptr: the dialect is not written.
  std::vector<Json> (*suggest)(const Strategy&, const std::vector<Bucket>&, const Workload&,
                               const Cluster&) = nullptr;
};

std::span<const Dialect> dialects();
const Dialect* find_dialect(std::string_view name);  // or nullptr
std::vector<std::string> dialect_names();

}  // namespace syncline
