#include "core/tune/dialect_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
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
  const Compression& compression = strategy.compression;
  std::string key;
  for (const auto& part :
       {std::to_string(strategy.streams), std::to_string(static_cast<int>(strategy.hierarchy.form)),
        std::to_string(strategy.hierarchy.group_size), std::to_string(strategy.fusion.cycle),
        compression.codec, std::to_string(strategy.local_sgd.enabled),
        std::to_string(strategy.bucket_copies), std::to_string(strategy.host_sync)}) {
    key += part + ",";
  }
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

// The same gradients in the same collectives, long after every ramp, and yet another time.
std::string around_the_exchange(const Strategy& wanted, const Strategy& found,
                                const Scenario& scenario) {
  for (const auto& phase : plan::training_phases(wanted, scenario.training)) {
    const auto plan_of = [&](const Strategy& strategy) {
      return plan::make_plan(scenario.workload, scenario.cluster, strategy, phase.point);
    };
    const std::string text = dialect::plan_difference(plan_of(wanted), plan_of(found));
    if (!text.empty()) return "at some steps of the training " + text;
  }
  return dialect::time_difference(plan::make_plan(scenario.workload, scenario.cluster, wanted),
                                  plan::make_plan(scenario.workload, scenario.cluster, found));
}

bool same_time(Seconds a, Seconds b) { return std::abs(a - b) <= 1e-9 * std::max(a, b); }

// Of what decides how the winner trains, compression and averaging, how much a strategy keeps.
int kept_training(const Strategy& winner, const Strategy& strategy) {
  return (winner.compression.codec == strategy.compression.codec) +
         (winner.local_sgd.enabled == strategy.local_sgd.enabled);
}

// One configuration, read back and priced.
struct Tried {
  Json config;
  Strategy strategy;
  measure::Metrics metrics;
};

// What trains as the winner does comes before what is fast. Of those whose step times no
// measurement could tell apart, the one with the fewest collectives; of those alike, the first.
const Tried& best_of(const std::vector<Tried>& tried, const Strategy& winner) {
  constexpr double kEqual = 1e-3;
  int kept = 0;
  for (const auto& each : tried) kept = std::max(kept, kept_training(winner, each.strategy));
  const auto counts = [&](const Tried& each) {
    return kept_training(winner, each.strategy) == kept;
  };
  Seconds least = std::numeric_limits<double>::infinity();
  for (const auto& each : tried) {
    if (counts(each)) least = std::min(least, each.metrics.step_time);
  }
  const Tried* best = nullptr;
  for (const auto& each : tried) {
    if (!counts(each) || each.metrics.step_time > least * (1 + kEqual)) continue;
    if (best == nullptr || each.metrics.collectives < best->metrics.collectives) best = &each;
  }
  return *best;
}

}  // namespace

Emitted best_config(const dialect::Dialect& dialect, const Strategy& winner,
                    const Scenario& scenario, run::Executor& executor,
                    collective::PriceBook& book) {
  const auto step_of = [&](const Strategy& strategy) {
    return measure::price_strategy(scenario, strategy, executor, book).metrics.step_time;
  };
  const Seconds wanted = step_of(winner);
  const auto written = dialect::write_config(dialect, winner, scenario.workload, scenario.cluster);
  const std::string algorithm = dialect::kept_algorithm(winner, scenario.cluster);
  std::vector<Json> configs;
  Emitted best;
  if (written) {
    best.algorithm = written->algorithm;
    best.setting = written->setting;
    if (written->exact && same_time(step_of(written->strategy), wanted)) {
      best.config = written->config;
      best.strategy = written->strategy;
      best.step_time = step_of(written->strategy);
      best.exact = true;
      best.searched = 1;
      return best;
    }
    configs.push_back(written->config);
  }
  for (auto& config : configs_of(dialect, winner, scenario, book)) {
    configs.push_back(std::move(config));
  }

  std::set<std::string> seen;
  std::vector<Tried> tried;
  for (const Json& config : configs) {
    Strategy strategy = dialect::reading_of(dialect, config, scenario.workload, scenario.cluster,
                                            {.algorithm = algorithm})
                            .strategy;
    strategy.name = dialect.name;
    if (!seen.insert(plan_key(scenario, strategy)).second) continue;
    const auto metrics = measure::price_strategy(scenario, strategy, executor, book).metrics;
    tried.push_back({config, std::move(strategy), metrics});
  }
  const Tried& found = best_of(tried, winner);
  best.config = found.config;
  best.strategy = found.strategy;
  best.step_time = found.metrics.step_time;
  best.searched = tried.size();
  best.difference = difference(winner, best.strategy, scenario);
  best.exact = best.difference.empty() && same_time(best.step_time, wanted);
  if (best.difference.empty() && !best.exact) {
    best.difference = around_the_exchange(winner, best.strategy, scenario);
  }
  return best;
}

}  // namespace syncline::tune
