#include "cli/strategy_option.h"

#include "core/error.h"
#include "core/json/reader.h"

namespace syncline {

const Strategy& chosen_strategy(const Scenario& scenario, const std::string& name,
                                const std::string& file) {
  if (name.empty()) return scenario.strategies.front();
  std::vector<std::string> names;
  std::string known;
  for (const auto& strategy : scenario.strategies) {
    if (strategy.name == name) return strategy;
    names.push_back(strategy.name);
    known += (known.empty() ? "" : ", ") + strategy.name;
  }
  const auto near = nearest_word(name, names);
  throw InputError("--strategy: '" + name + "' is no strategy of " + file +
                   (near ? " (did you mean '" + *near + "'?)" : "") + "; it has " + known);
}

}  // namespace syncline
