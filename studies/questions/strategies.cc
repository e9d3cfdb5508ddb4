#include "studies/questions/strategies.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "formats/json/reader.h"
#include "formats/text/visible.h"
#include "studies/warnings/warnings.h"

namespace syncline::questions {

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
  throw InputError("--strategy: '" + shorten_text(name) + "' is not a strategy of " + file +
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

std::vector<std::string> warnings_here(const input::Document& document,
                                       const std::vector<Strategy>& strategies) {
  Scenario scenario = input::parse_scenario(document);
  scenario.strategies = strategies;
  return measure::warnings_of(document, scenario);
}

std::string nearest_text(const Strategy& strategy, const std::string& dialect,
                         const dialect::Written& written) {
  return "strategy '" + strategy.name + "' cannot be expressed in " + dialect +
         ": the nearest configuration is " + written.config.dump() + ", but " + written.difference;
}

}  // namespace syncline::questions
