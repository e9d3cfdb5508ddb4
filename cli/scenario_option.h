// The scenario that a verb reads, and what may be changed of it on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/input/document.h"
#include "core/scenario/scenario.h"

namespace syncline::cli {

struct ScenarioOption {
  std::string file;              // - is standard input
  std::vector<std::string> set;  // KEY=VALUE
};

// Adds the file, with what a verb makes of the scenario's sweep, and --set.
void add_scenario(CLI::App& verb, ScenarioOption& option, const std::string& note = "");
// --set alone, where the file is an option of another name.
CLI::Option* add_set(CLI::App& verb, std::vector<std::string>& set);

// The document with its keys changed. Throws InputError.
input::Document read(const ScenarioOption& option);
// The same for ranks that each read the scenario themselves: not from standard input.
input::Document read_on_ranks(const ScenarioOption& option);

// What every verb says of such a scenario (core/measure/remarks.h), for those that ignore its
// sweep, of the strategies of it that are asked for.
std::vector<std::string> remarks_here(const input::Document& document,
                                      const std::vector<Strategy>& strategies);

// "cluster.inter.bandwidth_gbps=10": the value as JSON, or as plain text where it is none. Throws
// InputError.
void set_keys(input::Document& document, const std::vector<std::string>& changes);

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

}  // namespace syncline::cli
