// Options that several verbs take, and what they choose.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"
#include "cli/verbs.h"
#include "formats/input/document.h"
#include "formats/scenario/scenario.h"

namespace syncline::cli {

// For Option::transform: takes a word that means one of them for certain as that one
// (same_name), and refuses others with what is near.
CLI::Validator one_of_words(const std::vector<std::string>& words);

// A number from `low` to `high`, in CLI::Range's words; that one takes nan for a number in every
// range.
CLI::Validator number_from(double low, double high);

// The number that the whole text is; none where it is more or something else.
template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

// An option that names a file, or several.
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

// The document with its keys changed. Throws InputError.
input::Document read(const ScenarioOption& option);
// Reads it for ranks that each read the scenario themselves: not from standard input.
input::Document read_on_ranks(const ScenarioOption& option);

// Returns the warnings of a scenario (studies/warnings/warnings.h) for these of its strategies,
// without its sweep.
std::vector<std::string> warnings_here(const input::Document& document,
                                       const std::vector<Strategy>& strategies);

// --jobs: how many processes share the work.
void add_jobs(CLI::App& verb, int& jobs, const std::string& about);

// --strategy NAME: one, and what the verb does without it.
void add_strategy(CLI::App& verb, std::string& name, const std::string& otherwise);
// --strategy NAME, as often as it is given.
void add_strategies(CLI::App& verb, std::vector<std::string>& names, const std::string& about);

// The strategy of that name, the first one for an empty name. Throws InputError with the names that
// the scenario has and the nearest of them.
const Strategy& chosen_strategy(const Scenario& scenario, const std::string& name,
                                const std::string& file);
// Those of these names, in the order of the names; all for none.
std::vector<Strategy> chosen_strategies(const Scenario& scenario,
                                        const std::vector<std::string>& names,
                                        const std::string& file);

// What a verb takes that answers of one strategy, or of all, of a scenario without its sweep.
struct StrategyOptions {
  ScenarioOption scenario;
  std::string strategy;
  Output output;
};

// Such a verb, with its pages where `html`. `otherwise`: what it does without --strategy.
VerbAction add_strategy_verb(CLI::App& app, const char* name, const char* about,
                             const char* otherwise, int (*run)(const StrategyOptions&),
                             bool html = false);

}  // namespace syncline::cli
