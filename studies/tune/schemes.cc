#include "studies/tune/schemes.h"

#include <algorithm>
#include <utility>

#include "studies/explain/advice.h"

namespace syncline::tune {

std::vector<measure::ReadScheme> schemes_beside(const input::Document& document,
                                                const Scenario& scenario,
                                                const dialect::Dialect* emit) {
  if (scenario.cluster.ranks() == 1) return {};
  const Strategy& baseline = *find_strategy(scenario, scenario.baseline);
  // Without a framework, schemes are needed only if the baseline does not fit.
  const bool framed = emit != nullptr || !baseline.dialect.empty();
  if (!framed && measure::memory_of(scenario, baseline).fits()) return {};
  const Json& entries = document.root.at("strategies");
  const auto own = std::ranges::find_if(
      entries, [&](const Json& entry) { return entry.value("name", "") == baseline.name; });
  Json written = *own;
  const bool other = emit != nullptr && emit->name != baseline.dialect;
  if (other) written = {{"dialect", emit->name}};
  std::vector<measure::ReadScheme> schemes = measure::schemes_of(scenario, written);
  std::erase_if(schemes, [&](const measure::ReadScheme& each) {
    const auto same = [&](const Json& entry) {
      return entry.value("dialect", "") == each.scheme.dialect &&
             entry.value("config", Json()) == each.scheme.config;
    };
    const bool asked = emit == nullptr || each.scheme.dialect == emit->name;
    return !asked || std::ranges::any_of(entries, same) ||
           !measure::memory_of(scenario, each.strategy).fits() ||
           measure::training_beside(each.strategy, baseline) != measure::TrainingChange::kSame;
  });
  for (auto& [scheme, strategy] : schemes) {
    if (find_strategy(scenario, scheme.name) != nullptr) scheme.name += ", as it comes";
    strategy.name = scheme.name;
  }
  return schemes;
}

}  // namespace syncline::tune
