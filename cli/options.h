// Options that several verbs have, and their values.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"
#include "cli/verbs.h"
#include "formats/input/document.h"
#include "formats/scenario/scenario.h"
#include "studies/questions/arguments.h"
#include "studies/questions/strategies.h"

namespace syncline::cli {

// Returns a validator for Option::transform: replaces a word that certainly means one of `words`
// (same_name) by that one, and refuses others with similar words.
CLI::Validator one_of_words(const std::vector<std::string>& words);

// Returns a validator of numbers from `low` to `high`, with CLI::Range's message; CLI::Range
// accepts nan in every range.
CLI::Validator number_between(double low, double high);

// Adds an option that names a file, or several.
template <typename Names>
CLI::Option* add_file(CLI::App& verb, const char* option, Names& names, const char* about) {
  return verb.add_option(option, names, about)->type_name("FILE");
}

// The scenario that a verb reads, and changes to it on the command line.
struct ScenarioOption {
  std::string file;              // - is standard input
  std::vector<std::string> set;  // KEY=VALUE: the value as JSON, or else as plain text
};

// Adds the scenario's file and --set. `note`: the verb's use of the scenario's sweep.
void add_scenario(CLI::App& verb, ScenarioOption& option, const std::string& note = "");
// Adds only --set, for verbs with the file in another option.
CLI::Option* add_set(CLI::App& verb, std::vector<std::string>& set);

// Returns the document with its keys changed. Throws InputError.
input::Document read(const ScenarioOption& option);
// Reads the document for ranks that each read the scenario: not from standard input.
input::Document read_on_ranks(const ScenarioOption& option);

// Adds --strategy NAME, given once; `otherwise` describes the verb without it.
void add_strategy(CLI::App& verb, std::string& name, const std::string& otherwise);
// Adds --strategy NAME, which may be repeated.
void add_strategies(CLI::App& verb, std::vector<std::string>& names, const std::string& about);

using questions::chosen_strategies;
using questions::chosen_strategy;
using questions::warnings_here;

// Adds the arguments of a question that the verb does not have yet: those in `names`, or all.
void add_arguments(CLI::App& verb, const questions::Arguments& arguments,
                   const std::vector<std::string>& names = {});

// The number of ranks of a verb that runs on ranks, and the way they meet.
struct RanksOptions {
  int ranks = 0;        // ranks to start here; 0: a launcher has started us
  double timeout = 60;  // seconds
  std::string meet;     // file for rank 0's address; empty: the launcher's way
};

// Adds the options for ranks. `live`: the option that they require, if there is one.
void add_ranks_options(CLI::App& verb, RanksOptions& options, CLI::Option* live = nullptr);

// Makes a verb ask `Question` of a scenario without its sweep; `html`: the answer has a page.
template <typename Question>
VerbAction add_question(CLI::App& verb, bool html,
                        void (*tell)(const Question&, const input::Document&, const Output&)) {
  struct Asked {
    ScenarioOption scenario;
    Question question;
    Output output;
  };
  auto asked = std::make_shared<Asked>();
  add_scenario(verb, asked->scenario, "its sweep is ignored");
  add_arguments(verb, arguments_of(asked->question));
  add_format(verb, asked->output);
  if (html) add_html(verb, asked->output);
  return [asked, tell] {
    const input::Document document = read(asked->scenario);
    expect_writable({asked->output.html});
    tell(asked->question, document, asked->output);
    return 0;
  };
}

}  // namespace syncline::cli
