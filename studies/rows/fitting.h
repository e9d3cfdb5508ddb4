// Remedies for a job that does not fit into memory, in the usual order of attempts: another scheme
// (formats/dialect/schemes.h), recomputation, smaller micro-batches of the same step, a partitioned
// model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/dialect/schemes.h"
#include "formats/input/document.h"
#include "studies/rows/memory.h"

namespace syncline::measure {

// Changes of a job that are allowed in addition to its scheme.
struct Freedom {
  bool recompute = true;
  bool batch = true;   // samples per micro-batch; a step keeps its samples
  bool layout = true;  // layout of a model given by its operators
};

struct Remedy {
  Json workload = Json::object();  // keys that change, with their new values
  std::vector<dialect::Scheme>
      schemes;  // schemes that fit then, the simplest first; empty: nothing was tried
  std::vector<std::string> changes;  // in words: "full recomputation"
  bool own = false;                  // the first scheme is one of the job's strategies
  Memory memory;                     // memory of the first scheme
  bool fits = true;                  // false: the remedy with the least memory
  std::string elsewhere = {};  // if it does not: "'FSDP2' fits on 4 such nodes"; empty: unknown

  // Returns "'FSDP2' with full recomputation": the first scheme, or one of that name.
  std::string words() const { return words_of(schemes.front().name); }
  std::string words_of(const std::string& scheme) const;
  // Returns the options that set it, or the `tune` command that writes it for that file.
  std::string how(const std::string& file) const;
};

struct ReadScheme {
  dialect::Scheme scheme;
  Strategy strategy;
};
// Returns the schemes of a strategy's framework as strategies of this scenario, without those that
// the framework refuses. `written`: the strategy in the document.
std::vector<ReadScheme> schemes_of(const Scenario& scenario, const Json& written);

// Finds changes that make a strategy of the document fit; none if one already fits. Uses the
// baseline's framework or `dialect`, which then must express it. Ignores the document's sweep.
// Throws InputError if the document is wrong.
Remedy remedy_of(const input::Document& document, const Freedom& may = {},
                 std::string_view dialect = {});

// Applies the changes of a remedy to a document's workload. In the strategies' configurations only
// samples and number of micro-batches change.
void apply(const Remedy& remedy, input::Document& document);

// Strategies of a scenario that do not fit, in words.
struct MemoryLack {
  std::string large;   // empty: no strategy lacks memory; else "'DDP' needs 129 GB per GPU, ..."
  std::string others;  // number of others: "; so do 2 more"; empty: none
  std::string fits;    // a strategy that fits, else a remedy, its memory and its options
  bool some_fit = false;

  bool empty() const { return large.empty(); }
  // Returns one sentence without its full stop.
  std::string words() const { return fits.empty() ? lacking() : lacking() + "; " + fits; }
  std::string lacking() const { return large + others; }
};

// Returns the lack of a scenario, without a remedy.
MemoryLack memory_lack(const Scenario& scenario);
// Returns the words of a remedy, applied in that file; empty if nothing was tried.
std::string remedy_words(const Remedy& remedy, const std::string& file);

// Returns the lack of a document with the remedy, for the first line of an answer. `scenario` is
// the document's.
MemoryLack memory_shortage(const input::Document& document, const Scenario& scenario,
                           std::string_view dialect = {});

}  // namespace syncline::measure
