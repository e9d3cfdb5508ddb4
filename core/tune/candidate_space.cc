#include "core/tune/candidate_space.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/input/scenario_json.h"
#include "core/measure/study.h"
#include "core/plan/planner.h"
#include "core/tune/search_space.h"

namespace syncline::tune {
namespace {

// What the rules of a configuration depend on: its candidates, and whether it can do with ticks.
using RulesKey = std::pair<std::vector<int>, bool>;

RulesKey rules_key(const Configuration& configuration) {
  Strategy ticked = configuration.strategy();
  ticked.fusion.cycle = kMillisecond;
  return {configuration.candidates(), configuration.rules_out(ticked)};
}

// Configurations come with the number of streams varying fastest: what the one before knows of
// buckets' costs mostly holds for the next. No more than those two are kept, as each knows every
// gradient.
class ConfigurationByConfiguration {
 public:
  ConfigurationByConfiguration(const Scenario& scenario, collective::CostCache& cache)
      : scenario_(scenario), cache_(cache) {}

  const Configuration& next(const Strategy& strategy) {
    auto configuration = std::make_unique<Configuration>(scenario_, strategy, cache_);
    if (last_ != nullptr) {
      Strategy alike = last_->strategy();
      alike.streams = strategy.streams;
      if (input::strategy_json(alike) == input::strategy_json(strategy))
        configuration->share_costs(*last_);
    }
    last_ = std::move(configuration);
    return *last_;
  }

 private:
  const Scenario& scenario_;
  collective::CostCache& cache_;
  std::unique_ptr<Configuration> last_;
};

// Whether the cluster's calibration, or the model of its library, says what every collective takes.
bool evaluated_by_library(const Scenario& scenario, const Strategy& strategy) {
  const CollectiveCostModel& cost_model = scenario.cluster.cost_model;
  const plan::Plan plan = plan::make_plan(scenario.workload, scenario.cluster, strategy);
  return std::all_of(plan.ops.begin(), plan.ops.end(), [&](const plan::Op& op) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    return collective == nullptr || collective->nccl || cost_model(*collective).has_value();
  });
}

}  // namespace

bool has_unmeasured(const Scenario& scenario, const Strategy& strategy) {
  return scenario.cluster.library == Library::kNccl && scenario.cluster.cost_model &&
         !evaluated_by_library(scenario, strategy);
}

CandidateSpace::CandidateSpace(const Scenario& scenario, const Search& search, const Strategy& base,
                               collective::CostCache& cache)
    : base_(base) {
  // Where collectives were measured, links that nobody measured do not compete with them.
  const bool measured = !has_unmeasured(scenario, base);
  const auto left_out = [&](const Strategy& strategy) {
    return measured && has_unmeasured(scenario, strategy);
  };
  // The best is never worse than what the user wrote down.
  for (const Strategy& row : scenario.strategies) {
    if (!trains_alike(row, base)) continue;
    if (left_out(row)) {
      unmeasured_.push_back("'" + row.name + "'");
      continue;
    }
    configurations_.push_back(row);
    points_.push_back(
        {.configuration = configurations_.size() - 1, .fusion = row.fusion, .own_row = true});
  }
  std::map<RulesKey, std::vector<FusionChoice>> by_rule;
  ConfigurationByConfiguration by_configuration(scenario, cache);
  for (const auto& strategy : strategies_of_configurations(search, base, scenario)) {
    if (left_out(strategy)) {
      const std::string words = "algorithm " + strategy.algorithm;
      const auto known = std::find(unmeasured_.begin(), unmeasured_.end(), words);
      if (known == unmeasured_.end()) unmeasured_.push_back(words);
      continue;
    }
    configurations_.push_back(strategy);
    const Configuration& configuration = by_configuration.next(strategy);
    const auto add = [&](const FusionChoice& choice) {
      points_.push_back({.configuration = configurations_.size() - 1,
                         .kind = choice.kind,
                         .fusion = choice.fusion,
                         .bound = configuration.bound(choice.ends)});
    };
    const auto [rules, fresh] = by_rule.try_emplace(rules_key(configuration));
    if (fresh) rules->second = rule_choices(search, configuration);
    for (const auto& choice : rules->second) add(choice);
    if (!search.optimum) continue;
    if (const auto choice = explicit_choice(configuration)) add(*choice);
  }
}

Strategy CandidateSpace::strategy_of(const Point& point) const {
  if (point.own_row) return configuration_of(point);
  return named(fused(configuration_of(point), point.fusion), point.kind);
}

Strategy CandidateSpace::named(Strategy strategy, FusionKind kind) const {
  strategy.name =
      kind == FusionKind::kBase ? base_.name + ", as it fuses" : fusion_words(strategy.fusion);
  const std::string words = input::configuration_words(strategy, base_);
  if (!words.empty()) strategy.name += ", " + words;
  return strategy;
}

}  // namespace syncline::tune
