#include "cli/strategy_option.h"

#include "core/error.h"
#include "core/json/reader.h"
#include "core/visible.h"

namespace syncline::cli {

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

}  // namespace syncline::cli
