// Remedies for a job that does not fit into memory, in the order in which people try them: another
// scheme (formats/dialect/schemes.h), recomputation, smaller micro-batches of the same step, a
// model that is cut.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/dialect/schemes.h"
#include "formats/input/document.h"
#include "studies/rows/memory.h"

namespace syncline::measure {

// Changes of a job that are allowed besides its scheme.
struct Freedom {
  bool recompute = true;
  bool batch = true;   // samples of a micro-batch: a step has the same, in more of them
  bool layout = true;  // of a model by its operators
};

struct Remedy {
  Json workload = Json::object();  // keys that change, with their new values
  std::vector<dialect::Scheme>
      schemes;                       // that fit then, the simplest first; empty: nothing was tried
  std::vector<std::string> changes;  // in words: "full recomputation"
  bool own = false;                  // the first is a strategy of the job's own
  Memory memory;                     // of the first
  bool fits = true;                  // false: of all that was tried it needs least

  // "'FSDP2' with full recomputation": of the first, and of a scheme of that name.
  std::string words() const { return words_of(schemes.front().name); }
  std::string words_of(const std::string& scheme) const;
  // Returns the options that set it, or the `tune` command that writes it for that file.
  std::string how(const std::string& file) const;
};

// Returns the schemes of a strategy's framework as strategies of this scenario, those that the
// framework refuses left out. `written`: the strategy as the document has it.
struct ReadScheme {
  dialect::Scheme scheme;
  Strategy strategy;
};
std::vector<ReadScheme> schemes_of(const Scenario& scenario, const Json& written);

// Finds what makes the document's strategies fit: nothing to change where one of them does. Of the
// baseline's framework, or of `dialect`, which then has to say it. The document's sweep is ignored.
// Throws InputError if it is wrong.
Remedy remedy_of(const input::Document& document, const Freedom& may = {},
                 std::string_view dialect = {});

// Puts the changes of a remedy into a document, its strategies as they are but for samples of a
// micro-batch that their configurations say.
void apply(const Remedy& remedy, input::Document& document);

// The strategies of a scenario that do not fit, in words.
struct MemoryLack {
  std::string large;   // the baseline, else the first: "'DDP' needs 129 GB a GPU, ..."; empty: none
  std::string others;  // how many more: "; so do 2 more"; empty: none
  std::string fits;    // a strategy that fits, else what a remedy needs and how it is set
  bool some_fit = false;

  bool empty() const { return large.empty(); }
  // Returns one sentence without its full stop.
  std::string words() const { return fits.empty() ? lacking() : lacking() + "; " + fits; }
  std::string lacking() const { return large + others; }
};

// Returns the lack of a scenario, without a remedy.
MemoryLack memory_lack(const Scenario& scenario);
// Returns the words of a remedy, set in that file; empty: nothing was tried.
std::string remedy_words(const Remedy& remedy, const std::string& file);

// Returns the lack of a document with the remedy, for the first line of an answer; `scenario` is
// the document's.
MemoryLack memory_shortage(const input::Document& document, const Scenario& scenario,
                           std::string_view dialect = {});

}  // namespace syncline::measure
