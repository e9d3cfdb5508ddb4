// Dialects: each reads a framework's own configuration verbatim into a strategy with exactly that
// framework's rules. Each dialect has its own file and is one row here. A scenario's entry:
//   {"name": "...", "dialect": "paddle", "config": {...}, "read_as": "code"}
// `config` holds only the framework's keys.
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

// A configuration as read for this workload and cluster.
struct Reading {
  Strategy strategy;  // the caller sets `name`
  // Differences between the framework's behaviour and the configuration (or its documentation), one
  // line each. `syncline check` prints them.
  std::vector<std::string> notes;
  // Entries of a list that name no gradient here, by key and number. One part of a model may lack
  // the gradients of another; an entry that no part has is a mistake.
  std::set<std::pair<std::string, std::size_t>> unheld;
};

// Throws InputError at the first entry that names no gradient.
void refuse_unheld(Reader& config, const Reading& reading);

struct ConfigChange;  // changes.h

// Functions about a workload's gradients, for the search for a configuration.
struct Partitions {
  // Returns the sizes in bytes from which a fusion rule makes other buckets, rising from 0. Ignores
  // the rule's own size.
  std::function<std::vector<Bytes>(const Fusion& rule)> sizes;
  // Returns the best buckets for a strategy, under any rule.
  std::function<std::vector<plan::Bucket>(const Strategy&)> best_buckets;
};

// A scheme as a scenario has it: how a model's weights, gradients and optimizer are distributed,
// from whole copies on each rank to shards of everything.
struct Scheme {
  std::string name;
  std::string dialect;
  Json config;

  Json entry() const { return {{"name", name}, {"dialect", dialect}, {"config", config}}; }
};

// A row of the table. Its functions get a cluster of the ranks that sum a dense gradient.
struct Dialect {
  std::string_view name;
  std::string_view summary;  // one line for `syncline list`
  // Reads every key of `config`, or throws with the framework's own rule in the message.
  // `as_documents`: follow the documentation if it differs from the code.
  Reading (*read)(Reader config, const Workload&, const Cluster&, bool as_documents);

  // Writing of configurations. All of it is optional: without it the dialect is only read.

  // Returns configurations that may lead to this strategy, given its buckets on this workload, the
  // likeliest first; write.h tries them. nullptr: the dialect is not written.
  std::vector<Json> (*suggest)(const Strategy&, const std::vector<plan::Bucket>&, const Workload&,
                               const Cluster&) = nullptr;
  // Returns changes worth trying for that configuration on this cluster. Some may change nothing,
  // or the framework may refuse them together with other keys.
  std::vector<ConfigChange> (*changes)(const Json& config, const Cluster&) = nullptr;
  // Defaults of the keys in `changes` that a configuration leaves out.
  Json defaults = Json::object();
  // The smallest configuration that trains data-parallel and changes nothing else.
  Json least = Json::object();
  // Returns configurations worth evaluating if the framework cannot express a winner exactly.
  std::vector<Json> (*candidates)(const Strategy& winner, const Workload&, const Cluster&,
                                  const Partitions&) = nullptr;
  // Returns the schemes that a job may take instead of its own, the simplest to set first. Keeps
  // other keys of `config`, the job's own; null: it has none. The framework may refuse some of them
  // for this job. nullptr: the framework has one scheme.
  std::vector<Scheme> (*schemes)(const Json& config, const Workload&, const Cluster&) = nullptr;
  // Sets the samples and the number of micro-batches in a configuration that has keys for them.
  // nullptr: it has no such keys.
  void (*set_batches)(std::int64_t batch, std::int64_t micro_batches, Json& config) = nullptr;
  // Code base of its jobs' kernels. The rate of one predicts little of another's. Empty: several.
  std::string_view kernels = {};
  // Bytes that the loss takes per word of the logits, in all, at its fullest: whole logits, and
  // those cut by tensor parallelism. Storages of torch 2.6, counted operation by operation:
  // F.cross_entropy(logits.float()) and loss_parallel hold log-probabilities and gradients in fp32,
  // across ranks also their exponentials.
  double loss_bytes = 12, cut_loss_bytes = 16;
  // The slow end of 80 % of the host's time beyond the prediction, as a share of a step that shards
  // the update: hooks around gathered parameters hold kernels up.
  double host_share = 0;
  // The same per layer and micro-batch of a job that gathers parameters.
  Seconds host_per_layer = 0;
  // True if it trains jobs with a partitioned model (workload.parallel).
  bool cuts_jobs = false;
  // Largest bucket size in bytes by which users mean one bucket, however small the model is; 0:
  // there is no such size.
  Bytes one_bucket = 0;
  // Its name for DistributedDataParallel's bucket_cap_mb; empty: it has no such key.
  std::string_view cap_key = {};
  // Returns a script's code that sets a configuration, on one line; nullptr: users set the keys.
  std::string (*code)(const Json& config) = nullptr;
  // Returns the reason why `emit --python` cannot write a file that applies the strategy in the
  // framework's jobs; empty: it can.
  std::string (*apply_refusal)(const Strategy&, const Workload&, const Cluster&) = nullptr;
  // Keys that name groups of ranks. A group that does not fit the job is refused at these keys.
  std::vector<const char*> group_keys = {};
};

// Refuses keys for features that are not modelled, given with a description of each feature. A
// value that means off (false, 0, 1, "none" and the like) is accepted.
void refuse_unmodelled(
    Reader& config,
    std::initializer_list<std::pair<std::string_view, std::string_view>> unmodelled);

// Accepts keys that do not change which data are exchanged when.
void skip_keys(Reader& config, std::initializer_list<const char*> keys);

// Returns the keys of `keys` that are given: "a, b".
std::string list_given(Reader& config, std::initializer_list<const char*> keys);

// Returns the object at `key`, or one without keys if it is absent.
Reader object_or_empty(Reader& config, const char* key);

// Adds each text with a true condition as a note.
void note(std::vector<std::string>& notes,
          std::initializer_list<std::pair<bool, std::string>> texts);

// Sets the table of frameworks. A program calls it once, before it reads a scenario
// (dialects.h has all of them).
void hand_in(std::vector<Dialect> rows);

// Returns the table in the order of hand_in; empty before.
std::span<const Dialect> dialects();
const Dialect* find_dialect(std::string_view name);  // or nullptr
std::vector<std::string> dialect_names();
std::vector<std::string> written_dialect_names();  // of dialects that can be written

inline Json least_config(const Dialect& dialect) { return dialect.least; }

// Settings of a run that a framework's configuration does not contain.
struct ReadAs {
  bool as_documents = false;
  // Algorithm of the collectives; empty: the choice of the cluster's library.
  std::string algorithm;
};

// Returns a configuration as the framework reads it; the cluster's library runs its collectives.
// The strategy has no name yet.
Reading reading_of(const Dialect& dialect, Reader config, const Workload& workload,
                   const Cluster& cluster, const ReadAs& as = {});
Reading reading_of(const Dialect& dialect, const Json& config, const Workload& workload,
                   const Cluster& cluster, const ReadAs& as = {});

}  // namespace syncline::dialect
