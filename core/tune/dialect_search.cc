#include "core/tune/dialect_search.h"

#include <set>

#include "core/dialect/write.h"
#include "core/measure/study.h"
#include "core/plan/planner.h"
#include "core/tune/arm.h"
#include "core/tune/rules.h"
#include "core/tune/thresholds.h"

namespace syncline::tune {
namespace {

// What is known about this scenario's gradients, for dialects that list configurations to try.
dialect::Partitions partitions_of(const Scenario& scenario, collective::PriceBook& book) {
  dialect::Partitions partitions;
  partitions.sizes = [&scenario](const Fusion& rule) {
    std::vector<const Tensor*> tensors;
    std::vector<int> places;
    for (const auto& tensor : scenario.workload.tensors) {
      places.push_back(static_cast<int>(tensors.size()));
      tensors.push_back(&tensor);
    }
    std::vector<Bytes> sizes;
    for (const auto& threshold : size_thresholds(tensors, places, rule)) {
      sizes.push_back(threshold.value);
    }
    return sizes;
  };
  partitions.best_buckets = [&scenario, &book](Strategy strategy) {
    strategy.fusion = by_ends(Arm(scenario, strategy, book).optimum().ends);
    return plan::make_plan(scenario.workload, scenario.cluster, strategy).buckets;
  };
  return partitions;
}

std::vector<Json> configs_of(const dialect::Dialect& dialect, const Strategy& winner,
                             const Scenario& scenario, collective::PriceBook& book) {
  if (dialect.candidates == nullptr) return {dialect::least_config(dialect)};
  return dialect.candidates(winner, scenario.workload, scenario.cluster,
                            partitions_of(scenario, book));
}

// What decides the plan of a strategy as dialects read it; two alike need not both be priced.
std::string plan_key(const Scenario& scenario, const Strategy& strategy) {
  std::string key = std::to_string(strategy.streams) + "," +
                    std::to_string(static_cast<int>(strategy.hierarchy.form)) + "," +
                    std::to_string(strategy.fusion.cycle) + ",";
  const plan::Plan plan = plan::make_plan(scenario.workload, scenario.cluster, strategy);
  for (const auto& bucket : plan.buckets) {
    key += std::to_string(bucket.ready) + ":" + std::to_string(bucket.tensors.size()) + " ";
  }
  return key;
}

// What trains differently is said before what only moves differently.
std::string difference(const Strategy& wanted, const Strategy& found, const Scenario& scenario) {
  if (wanted.local_sgd.enabled != found.local_sgd.enabled) {
    return found.local_sgd.enabled ? "it averages parameters"
                                   : "it exchanges gradients at every step instead of averaging "
                                     "parameters";
  }
  if (wanted.compression.codec != found.compression.codec) {
    const auto name = [](const Strategy& s) {
      return s.compression.codec.empty() ? std::string("uncompressed")
                                         : "by " + s.compression.codec;
    };
    return "gradients travel " + name(found) + " instead of " + name(wanted);
  }
  return dialect::plan_difference(plan::make_plan(scenario.workload, scenario.cluster, wanted),
                                  plan::make_plan(scenario.workload, scenario.cluster, found));
}

}  // namespace

Emitted best_config(const dialect::Dialect& dialect, const Strategy& winner,
                    const Scenario& scenario, run::Executor& executor,
                    collective::PriceBook& book) {
  const auto step_of = [&](const Strategy& strategy) {
    return measure::price_strategy(scenario, strategy, executor, book).metrics.step_time;
  };
  std::vector<Json> configs;
  const auto written = dialect::write_config(dialect, winner, scenario.workload, scenario.cluster);
  const std::string algorithm = dialect::kept_algorithm(winner, scenario.cluster);
  Emitted best;
  if (written) {
    best.algorithm = written->algorithm;
    best.setting = written->setting;
    if (written->exact) {
      best.config = written->config;
      best.strategy = written->strategy;
      best.step_time = step_of(written->strategy);
      best.exact = true;
      best.searched = 1;
      return best;
    }
    configs.push_back(written->config);
  }
  // Sparse or rare exchange: the switches decide, and fusion hardly matters.
  const bool switches_only = winner.local_sgd.enabled || winner.compression.codec == "dgc";
  if (!switches_only || configs.empty()) {
    for (auto& config : configs_of(dialect, winner, scenario, book)) {
      configs.push_back(std::move(config));
    }
  }

  std::set<std::string> seen;
  for (const Json& config : configs) {
    Strategy strategy = dialect::reading_of(dialect, config, scenario.workload, scenario.cluster,
                                            {.algorithm = algorithm})
                            .strategy;
    strategy.name = dialect.name;
    if (!seen.insert(plan_key(scenario, strategy)).second) continue;
    const Seconds step = step_of(strategy);
    ++best.searched;
    if (best.searched > 1 && step >= best.step_time * (1 - 1e-9)) continue;
    best.config = config;
    best.strategy = std::move(strategy);
    best.step_time = step;
  }
  best.difference = difference(winner, best.strategy, scenario);
  best.exact = best.difference.empty();
  return best;
}

}  // namespace syncline::tune
