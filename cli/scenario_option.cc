#include "cli/scenario_option.h"

#include "core/error.h"
#include "core/input/read_scenario.h"
#include "core/json/reader.h"
#include "core/json/text.h"
#include "core/measure/remarks.h"
#include "core/visible.h"

namespace syncline::cli {

void add_scenario(CLI::App& verb, ScenarioOption& option, const std::string& note) {
  verb.add_option("file", option.file,
                  "the scenario (JSON), - for standard input" + (note.empty() ? "" : "; " + note))
      ->required();
  add_set(verb, option.set);
}

CLI::Option* add_set(CLI::App& verb, std::vector<std::string>& set) {
  // One a time: what follows a change may be a file.
  return verb.add_option("--set", set, "change a key of the scenario first: KEY=VALUE")
      ->allow_extra_args(false);
}

input::Document read(const ScenarioOption& option) {
  input::Document document = input::read_document(option.file);
  set_keys(document, option.set);
  return document;
}

input::Document read_on_ranks(const ScenarioOption& option) {
  if (option.file == input::kStandardInput) {
    throw InputError("-: expected a file: each rank reads the scenario by itself");
  }
  return read(option);
}

std::vector<std::string> remarks_here(const input::Document& document,
                                      const std::vector<Strategy>& strategies) {
  Scenario scenario = input::parse_scenario(document);
  scenario.strategies = strategies;
  return measure::remarks_of(document, scenario);
}

void set_keys(input::Document& document, const std::vector<std::string>& changes) {
  for (const auto& change : changes) {
    const auto equals = change.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError("--set: found '" + shortened(change) + "', expected KEY=VALUE");
    }
    const std::string text = change.substr(equals + 1);
    const auto value = json_in(text);
    const auto several = value ? std::nullopt : json_in("[" + text + "]");
    if (several && text.find(',') != std::string::npos) {
      throw InputError("--set: found several values, '" + shortened(text) +
                       "', expected one; a sweep takes them: --set 'sweep={\"" +
                       change.substr(0, equals) + "\": " + several->dump() + "}'");
    }
    input::set_key(document, change.substr(0, equals), value ? *value : Json(text));
  }
}

void add_strategy(CLI::App& verb, std::string& name, const std::string& otherwise) {
  verb.add_option("--strategy", name, "which strategy; " + otherwise + " if left out");
}

void add_strategies(CLI::App& verb, std::vector<std::string>& names, const std::string& about) {
  verb.add_option("--strategy", names, about)->allow_extra_args(false);
}

const Strategy& chosen_strategy(const Scenario& scenario, const std::string& name,
                                const std::string& file) {
  if (name.empty()) return scenario.strategies.front();
  if (const Strategy* strategy = find_strategy(scenario, name)) return *strategy;
  std::vector<std::string> names;
  std::string known;
  for (const auto& strategy : scenario.strategies) {
    names.push_back(strategy.name);
    known += (known.empty() ? "'" : ", '") + strategy.name + "'";
  }
  throw InputError("--strategy: '" + shortened(name) + "' is no strategy of " + file +
                   did_you_mean(name, names) + "; it has " + known);
}

std::vector<Strategy> chosen_strategies(const Scenario& scenario,
                                        const std::vector<std::string>& names,
                                        const std::string& file) {
  if (names.empty()) return scenario.strategies;
  std::vector<Strategy> chosen;
  for (const auto& name : names) chosen.push_back(chosen_strategy(scenario, name, file));
  return chosen;
}

}  // namespace syncline::cli
