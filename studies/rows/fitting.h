// What makes a job fit into its devices' memory, in the order in which people try it: another
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

// What may be changed of a job besides its scheme.
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
  // How it is set: by keys, or with what `tune` writes for that scenario's file.
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

// Of a scenario: "'DDP' with Adam needs 129 GB a GPU", what the device has, and what of it fits.
// The baseline, else the first strategy that does not fit; empty where all do.
std::string memory_lack(const Scenario& scenario);
// What a remedy of it needs, and how it is set in that file; empty: nothing was tried.
std::string remedy_words(const Remedy& remedy, const std::string& file);

// Both of the document as a whole, for the first line of an answer; `scenario` is the document's.
std::string memory_shortage(const input::Document& document, const Scenario& scenario,
                            std::string_view dialect = {});

}  // namespace syncline::measure
