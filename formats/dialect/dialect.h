// Dialects: a framework's own configuration, read verbatim into a strategy that reproduces that
// framework's exact rules. Each dialect lives in a file of its own and is one row here.
// In a scenario a strategy is written in a dialect as
//   {"name": "...", "dialect": "paddle", "config": {...}, "read_as": "code"}
// where `config` holds the framework's keys and nothing else.
#pragma once

#include <functional>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "formats/json/reader.h"
#include "formats/scenario/scenario.h"

namespace syncline::dialect {

// A configuration as understood on this workload and cluster.
struct Reading {
  Strategy strategy;  // `name` is filled in by the caller
  // One line each: what the framework silently does otherwise than the configuration (or its
  // documentation) says. `syncline check` prints them.
  std::vector<std::string> notes;
  // Entries of a list that name no gradient here, by key and number. A part of a model may lack
  // what another has; an entry that no part has is a mistake.
  std::set<std::pair<std::string, std::size_t>> unheld;
};

// Fails at the first entry that names no gradient.
void refuse_unheld(Reader& config, const Reading& reading);

struct ConfigChange;  // changes.h

// What the search for a configuration can say about a workload's gradients.
struct Partitions {
  // The sizes in bytes from which on a fusion rule makes other buckets (its own size is ignored),
  // rising from 0.
  std::function<std::vector<Bytes>(const Fusion& rule)> sizes;
  // The buckets that suit a strategy best, whatever rule they come from.
  std::function<std::vector<plan::Bucket>(const Strategy&)> best_buckets;
};

// A scheme as a scenario has it: who holds a model's weights, gradients and optimizer, from whole
// copies on each rank to shards of everything.
struct Scheme {
  std::string name;
  std::string dialect;
  Json config;

  Json entry() const { return {{"name", name}, {"dialect", dialect}, {"config", config}}; }
};

// The cluster of a row's own functions is the one that the ranks see which sum a dense gradient.
struct Dialect {
  std::string_view name;
  std::string_view summary;  // one line for `syncline list`
  // Reads every key of `config` or fails with the framework's own rule in the message.
  // `as_documents`: where documentation and code differ, follow the documentation.
  Reading (*read)(Reader config, const Workload&, const Cluster&, bool as_documents);

  // The way back. All of this may be left out: such a dialect is only read.

  // Configurations that may come to this strategy, whose buckets on this workload are given, the
  // likeliest first; write.h tries them. nullptr: the dialect is not written.
  std::vector<Json> (*suggest)(const Strategy&, const std::vector<plan::Bucket>&, const Workload&,
                               const Cluster&) = nullptr;
  // Changes worth trying for that configuration on this cluster; some may be no change, or refused
  // by the framework beside other keys.
  std::vector<ConfigChange> (*changes)(const Json& config, const Cluster&) = nullptr;
  // What the keys of `changes` are where a configuration does not give them.
  Json defaults = Json::object();
  // The configuration that trains data-parallel and leaves everything else as it is.
  Json least = Json::object();
  // Configurations worth evaluation where the framework cannot say a winner exactly.
  std::vector<Json> (*candidates)(const Strategy& winner, const Workload&, const Cluster&,
                                  const Partitions&) = nullptr;
  // Returns the schemes that a job may take in place of its own, those that are simpler to set
  // first. Other keys of `config`, the job's own, stay; null: it has none. Some may be refused on
  // this job. nullptr: the framework has one scheme.
  std::vector<Scheme> (*schemes)(const Json& config, const Workload&, const Cluster&) = nullptr;
  // Sets the samples and the number of micro-batches in a configuration that says them. nullptr:
  // none does.
  void (*set_batches)(std::int64_t batch, std::int64_t micro_batches, Json& config) = nullptr;
  // It trains jobs that are cut (workload.parallel).
  bool cuts_jobs = false;
  // Buckets up to this size are its users' way of saying one bucket, however large the model is; 0:
  // they have none.
  Bytes one_bucket = 0;
  // The key that is DistributedDataParallel's bucket_cap_mb; empty: it has none.
  std::string_view cap_key = {};
  // The lines of a script that set a configuration, as one; nullptr: its keys are what is set.
  std::string (*code)(const Json& config) = nullptr;
  // Where `emit --python` writes a file that carries strategies out in the framework's jobs: what
  // stands in the way of one; empty: nothing.
  std::string (*apply_refusal)(const Strategy&, const Workload&, const Cluster&) = nullptr;
  // Its keys that name groups of ranks, at which groups that do not fit the job are refused.
  std::vector<const char*> group_keys = {};
};

// Keys of a framework for what is not modelled, and what that is. One that is given and says more
// than off (false, 0, 1, "none" and the like) is refused in one sentence.
void refuse_unmodelled(
    Reader& config,
    std::initializer_list<std::pair<std::string_view, std::string_view>> unmodelled);

// Asks for keys that change nothing about what is exchanged when.
void pass_over(Reader& config, std::initializer_list<const char*> keys);

// Those of `keys` that are given: "a, b".
std::string given_among(Reader& config, std::initializer_list<const char*> keys);

// The object at `key`, one without keys where there is none.
Reader object_or_empty(Reader& config, const char* key);

// Each text whose condition holds becomes a note.
void note(std::vector<std::string>& notes,
          std::initializer_list<std::pair<bool, std::string>> texts);

// Sets the table of frameworks. A program calls it once, before it reads a scenario
// (dialects.h has all of them).
void hand_in(std::vector<Dialect> rows);

// The table, in the order in which it was handed in; empty before.
std::span<const Dialect> dialects();
const Dialect* find_dialect(std::string_view name);  // or nullptr
std::vector<std::string> dialect_names();
std::vector<std::string> written_dialect_names();  // of those that are written too

inline Json least_config(const Dialect& dialect) { return dialect.least; }

// What a framework's configuration does not say about a run.
struct ReadAs {
  bool as_documents = false;
  // Of its collectives; empty: what the cluster's library takes by itself.
  std::string algorithm;
};

// A configuration read as the framework would, its collectives carried out by the cluster's
// library; the strategy has no name yet.
Reading reading_of(const Dialect& dialect, Reader config, const Workload& workload,
                   const Cluster& cluster, const ReadAs& as = {});
Reading reading_of(const Dialect& dialect, const Json& config, const Workload& workload,
                   const Cluster& cluster, const ReadAs& as = {});

}  // namespace syncline::dialect
