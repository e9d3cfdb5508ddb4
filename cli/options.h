// Options that several verbs take, and what they choose.
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

// For Option::transform: takes a word that means one of them for certain as that one
// (same_name), and refuses others with what is near.
CLI::Validator one_of_words(const std::vector<std::string>& words);

// Returns a number from `low` to `high`, in CLI::Range's words; that one takes nan for a number in
// every range.
CLI::Validator number_from(double low, double high);

// Returns an option that names a file, or several.
template <typename Names>
CLI::Option* add_file(CLI::App& verb, const char* option, Names& names, const char* about) {
  return verb.add_option(option, names, about)->type_name("FILE");
}

// The scenario that a verb reads, and what may be changed of it on the command line.
struct ScenarioOption {
  std::string file;              // - is standard input
  std::vector<std::string> set;  // KEY=VALUE: the value as JSON, or as plain text where it is none
};

// Adds the file, with what a verb makes of the scenario's sweep, and --set.
void add_scenario(CLI::App& verb, ScenarioOption& option, const std::string& note = "");
// --set alone, where the file is an option of another name.
CLI::Option* add_set(CLI::App& verb, std::vector<std::string>& set);

// Returns the document with its keys changed. Throws InputError.
input::Document read(const ScenarioOption& option);
// Reads it for ranks that each read the scenario themselves: not from standard input.
input::Document read_on_ranks(const ScenarioOption& option);

// --strategy NAME: one, and what the verb does without it.
void add_strategy(CLI::App& verb, std::string& name, const std::string& otherwise);
// --strategy NAME, as often as it is given.
void add_strategies(CLI::App& verb, std::vector<std::string>& names, const std::string& about);

using questions::chosen_strategies;
using questions::chosen_strategy;
using questions::warnings_here;

// Adds the arguments of a question that the verb does not have yet: those of these names, or all.
void add_arguments(CLI::App& verb, const questions::Arguments& arguments,
                   const std::vector<std::string>& names = {});

// How many ranks a verb that runs on them has, and how they meet.
struct RanksOptions {
  int ranks = 0;        // to be started here; 0: a launcher has started us
  double timeout = 60;  // seconds
  std::string meet;     // file in which rank 0 publishes its address; empty: as the launcher has it
};

// Adds the options of them. `live`: the option without which they mean nothing, if there is one.
void add_ranks_options(CLI::App& verb, RanksOptions& options, CLI::Option* live = nullptr);

// Makes a verb ask `Question` of a scenario without its sweep; `html`: it has a page.
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
