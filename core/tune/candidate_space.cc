#include "core/tune/candidate_space.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/input/strategy_json.h"
#include "core/plan/planner.h"
#include "core/tune/search_space.h"

namespace syncline::tune {
namespace {

// What the rules of an arm depend on: its candidates, and whether it can do with ticks.
using RulesKey = std::pair<std::vector<int>, bool>;

RulesKey rules_key(const Arm& arm) {
  Strategy ticked = arm.strategy();
  ticked.fusion.cycle = kMillisecond;
  return {arm.candidates(), arm.rules_out(ticked)};
}

// Arms come with the number of streams varying fastest: what the one before knows of buckets' costs
// mostly holds for the next. No more than those two are kept, as each knows every gradient.
class ArmByArm {
 public:
  ArmByArm(const Scenario& scenario, collective::PriceBook& book)
      : scenario_(scenario), book_(book) {}

  const Arm& next(const Strategy& strategy) {
    auto arm = std::make_unique<Arm>(scenario_, strategy, book_);
    if (last_ != nullptr) {
      Strategy alike = last_->strategy();
      alike.streams = strategy.streams;
      if (input::strategy_json(alike) == input::strategy_json(strategy)) arm->share_costs(*last_);
    }
    last_ = std::move(arm);
    return *last_;
  }

 private:
  const Scenario& scenario_;
  collective::PriceBook& book_;
  std::unique_ptr<Arm> last_;
};

// Whether the cluster's calibration, or the model of its library, says what every collective takes.
bool priced_by_library(const Scenario& scenario, const Strategy& strategy) {
  const CollectiveLaw& law = scenario.cluster.law;
  const plan::Plan plan = plan::make_plan(scenario.workload, scenario.cluster, strategy);
  return std::all_of(plan.ops.begin(), plan.ops.end(), [&](const plan::Op& op) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    return collective == nullptr || collective->nccl || law(*collective).has_value();
  });
}

}  // namespace

bool has_unmeasured(const Scenario& scenario, const Strategy& strategy) {
  return scenario.cluster.library == Library::kNccl && scenario.cluster.law &&
         !priced_by_library(scenario, strategy);
}

CandidateSpace::CandidateSpace(const Scenario& scenario, const Search& search, const Strategy& base,
                               collective::PriceBook& book)
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
    arms_.push_back(row);
    points_.push_back({.arm = arms_.size() - 1, .fusion = row.fusion, .own_row = true});
  }
  std::map<RulesKey, std::vector<FusionChoice>> by_rule;
  ArmByArm by_arm(scenario, book);
  for (const auto& strategy : arm_strategies(search, base, scenario)) {
    if (left_out(strategy)) {
      const std::string words = "algorithm " + strategy.algorithm;
      const auto known = std::find(unmeasured_.begin(), unmeasured_.end(), words);
      if (known == unmeasured_.end()) unmeasured_.push_back(words);
      continue;
    }
    arms_.push_back(strategy);
    const Arm& arm = by_arm.next(strategy);
    const auto add = [&](const FusionChoice& choice) {
      points_.push_back({.arm = arms_.size() - 1,
                         .kind = choice.kind,
                         .fusion = choice.fusion,
                         .bound = arm.bound(choice.ends)});
    };
    const auto [rules, fresh] = by_rule.try_emplace(rules_key(arm));
    if (fresh) rules->second = rule_choices(search, arm);
    for (const auto& choice : rules->second) add(choice);
    if (!search.optimum) continue;
    if (const auto choice = explicit_choice(arm)) add(*choice);
  }
}

Strategy CandidateSpace::strategy_of(const Point& point) const {
  if (point.own_row) return arm_of(point);
  return named(fused(arm_of(point), point.fusion), point.kind);
}

Strategy CandidateSpace::named(Strategy strategy, FusionKind kind) const {
  strategy.name =
      kind == FusionKind::kBase ? base_.name + ", as it fuses" : fusion_words(strategy.fusion);
  const std::string words = input::arm_words(strategy, base_);
  if (!words.empty()) strategy.name += ", " + words;
  return strategy;
}

}  // namespace syncline::tune
