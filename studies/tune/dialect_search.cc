#include "studies/tune/dialect_search.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <set>

#include "core/base/error.h"
#include "core/collective/library.h"
#include "core/plan.h"
#include "formats/dialect/changes.h"
#include "formats/dialect/write.h"
#include "formats/input/conflicts.h"
#include "formats/input/scenario_json.h"
#include "studies/rows/memory.h"
#include "studies/tune/configuration.h"
#include "studies/tune/thresholds.h"

namespace syncline::tune {
namespace {

// Returns this scenario's partitions of gradients, for dialects that list candidate configurations.
dialect::Partitions partitions_of(Evaluator& evaluator) {
  const Scenario& scenario = evaluator.scenario();
  dialect::Partitions partitions;
  partitions.sizes = [&scenario](const Fusion& rule) {
    std::vector<const Tensor*> tensors;
    std::vector<int> places;
    for (const auto& tensor : scenario.workload.tensors) {
      places.push_back(static_cast<int>(tensors.size()));
      tensors.push_back(&tensor);
    }
    return size_thresholds(tensors, places, rule);
  };
  partitions.best_buckets = [&scenario, &evaluator](Strategy strategy) {
    const Configuration configuration(scenario, strategy, evaluator.cache());
    set_fusion(strategy, by_ends(configuration.optimum().ends));
    return plan::make_plan(scenario.workload, scenario.cluster, strategy).buckets;
  };
  return partitions;
}

// Returns a key of the settings that determine a strategy's plan, to skip equal ones.
std::string plan_key(const Scenario& scenario, const Strategy& strategy) {
  Strategy knobs = strategy;
  knobs.name.clear();
  knobs.dialect.clear();
  knobs.notes.clear();
  knobs.about.clear();
  set_fusion(knobs, {});
  knobs.fusion.cycle = strategy.fusion.cycle;
  knobs.fusion.sum_format = strategy.fusion.sum_format;
  std::string key = input::strategy_json(knobs).dump();
  const plan::Plan plan = plan::make_plan(scenario.workload, scenario.cluster, strategy);
  for (const auto& bucket : plan.buckets) {
    key += std::to_string(bucket.ready) + ":" + std::to_string(bucket.tensors.size()) + " ";
  }
  return key;
}

// Returns the difference in words. Differences of the training come before those of the exchange.
std::string difference(const Strategy& wanted, const Strategy& found, const Scenario& scenario) {
  if (wanted.local_sgd.enabled != found.local_sgd.enabled) {
    return found.local_sgd.enabled
               ? "it averages parameters"
               : "it sums gradients at every step instead of averaging parameters";
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

// Returns a difference outside the steady exchange: at some steps of the training, or in step time.
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

// Counts the winner's choices for the training (compression, averaging) that a strategy keeps.
int kept_training(const Strategy& winner, const Strategy& strategy) {
  return (winner.compression.codec == strategy.compression.codec) +
         (winner.local_sgd.enabled == strategy.local_sgd.enabled) +
         (winner.fusion.sums_in_fp32() <= strategy.fusion.sums_in_fp32());
}

// One configuration, read back and evaluated.
struct Tried {
  Json config;
  Strategy strategy;
  measure::Metrics metrics;
  bool fits = true;  // in the device's memory
};

// Returns true if some key begins with '_': a setting that the framework does not document.
bool has_private(const Json& config) {
  const auto is_private = [](const auto& item) { return item.key().starts_with('_'); };
  const auto items = config.items();
  return std::any_of(items.begin(), items.end(), is_private);
}

Json without_private(Json config) {
  for (auto item = config.begin(); item != config.end();) {
    item = item.key().starts_with('_') ? config.erase(item) : std::next(item);
  }
  return config;
}

// Counts numbers that are not round: not 2^n or 25 * 2^n, nor one or two digits ending in 0 or 5,
// followed by zeros. Numbers of the job's own configuration are not counted.
int odd_numbers(const Json& config, const Json& own) {
  int odd = 0;
  for (const auto& [key, value] : config.items()) {
    const bool known = own.is_object() && own.contains(key);
    if (known && own[key] == value) continue;
    if (value.is_structured()) odd += odd_numbers(value, known ? own[key] : Json());
    if (!value.is_number()) continue;
    auto number = std::fabs(value.get<double>());
    int exponent = 0;
    const double mantissa = std::frexp(number, &exponent);
    while (number >= 100 && std::fmod(number, 10) == 0) number /= 10;
    const bool decimal = number < 100 && std::fmod(number, 5) == 0;
    odd += number != 0 && mantissa != 0.5 && mantissa != 25.0 / 32 && !decimal ? 1 : 0;
  }
  return odd;
}

// Returns a configuration with the other keys of the job's own one.
Json beside_own(const Json& config, const Json& own) {
  if (!own.is_object()) return config;
  Json both = own;
  both.merge_patch(config);
  return both;
}

Seconds step_of(const Tried* tried) { return tried->metrics.step_time; }
Seconds least_of(const std::vector<const Tried*>& tried) {
  return tried.empty() ? std::numeric_limits<double>::infinity()
                       : step_of(std::ranges::min(tried, {}, step_of));
}

// Returns the best: by the winner's training first, then by fit into memory, then by step time. A
// private variable must gain 1 %, a number that is not round 0.5 %. Among step times too close to
// measure apart, the one with the fewest collectives wins; among those, the first.
const Tried& best_of(const std::vector<Tried>& tried, const Strategy& winner, const Json& own) {
  constexpr double kEqual = 1e-3;
  constexpr double kPrivate = 1e-2;
  int kept = 0;
  for (const auto& each : tried) kept = std::max(kept, kept_training(winner, each.strategy));
  std::vector<const Tried*> left;
  for (const auto& each : tried) {
    if (kept_training(winner, each.strategy) == kept) left.push_back(&each);
  }
  const auto fits = [](const Tried* each) { return each->fits; };
  if (std::ranges::any_of(left, fits)) std::erase_if(left, std::not_fn(fits));
  const auto leave_out = [&](double more, const std::function<bool(const Tried&)>& unwanted) {
    std::vector<const Tried*> wanted = left;
    std::erase_if(wanted, [&](const Tried* each) { return unwanted(*each); });
    if (least_of(wanted) <= least_of(left) * (1 + more)) left = std::move(wanted);
  };
  leave_out(kPrivate, [](const Tried& each) { return has_private(each.config); });
  leave_out(kRoundness, [&](const Tried& each) { return odd_numbers(each.config, own) > 0; });
  const Seconds least = least_of(left);
  leave_out(kEqual, [&](const Tried& each) { return step_of(&each) > least * (1 + kEqual); });
  return *std::ranges::min(left, {}, [](const Tried* each) { return each->metrics.collectives; });
}

// Compares two configurations: true if `one` fits better, or is shorter by a round number's worth.
bool gains(const Tried& one, const Tried& other) {
  if (one.fits != other.fits) return one.fits;
  return one.metrics.step_time < other.metrics.step_time * (1 - kRoundness);
}

// Configurations of a framework for one winner, each read back and evaluated once.
class ConfigSearch {
 public:
  ConfigSearch(const dialect::Dialect& dialect, const Strategy& winner, const Json& own,
               Evaluator& evaluator, std::string algorithm)
      : dialect_(dialect),
        winner_(winner),
        own_(own),
        evaluator_(evaluator),
        scenario_(evaluator.scenario()),
        algorithm_(std::move(algorithm)) {}

  // Returns the best of the configurations, and of those with any other setting that gains:
  // settings that keep the training and, if `other_buckets` is false, the buckets. Throws
  // InputError if the framework refuses all of them. Requires at least one.
  const Tried& best(std::vector<Json> configs, bool other_buckets) {
    for (const Json& config : configs) add(config);
    if (tried_.empty()) std::rethrow_exception(refusal_);
    for (bool gained = true; gained;) {
      gained = false;
      const Tried found = best_of(tried_, winner_, own_);
      for (const Json& patch : free_changes(found.config, other_buckets)) {
        Json patched = found.config;
        patched.merge_patch(patch);
        if (!add(patched) || best_of(tried_, winner_, own_).config != patched) continue;
        gained = true;
        for (Json& config : configs) {
          config.merge_patch(patch);
          add(config);
        }
        break;
      }
    }
    return best_of(tried_, winner_, own_);
  }

  // Returns the best reached by changes of one configuration; nullptr if the framework refuses it.
  const Tried* best_from(const Json& config) {
    if (!add(config)) return nullptr;
    return &best({}, true);
  }

  std::size_t searched() const { return tried_.size(); }

 private:
  // Returns changes that leave the training, and the buckets unless `other_buckets`, as they are.
  std::vector<Json> free_changes(const Json& config, bool other_buckets) const {
    using dialect::ChangeKind;
    std::vector<Json> patches;
    if (dialect_.changes == nullptr) return patches;
    for (const auto& change : dialect_.changes(config, exchanging(scenario_))) {
      const bool training = change.kind == ChangeKind::kRounding ||
                            change.kind == ChangeKind::kCompression ||
                            change.kind == ChangeKind::kAveraging;
      const bool held = !other_buckets && change.kind == ChangeKind::kFusion;
      if (!training && !held) patches.push_back(change.patch);
    }
    return patches;
  }

  // Adds a configuration; false if the framework refuses it, or if its plan was tried already.
  bool add(const Json& config) {
    Strategy strategy;
    try {
      strategy = dialect::reading_of(dialect_, config, scenario_.workload, scenario_.cluster,
                                     {.algorithm = algorithm_})
                     .strategy;
    } catch (const InputError&) {
      refusal_ = std::current_exception();
      return false;
    }
    // Settings of one framework fit together; an additional algorithm may not.
    const auto conflict = input::conflict_of(strategy, scenario_.workload, scenario_.cluster);
    if (conflict && !algorithm_.empty()) {
      refusal_ = std::make_exception_ptr(InputError(conflict->key + ": " + conflict->why));
      return false;
    }
    strategy.name = dialect_.name;
    const std::string key = plan_key(scenario_, strategy) + (has_private(config) ? "_" : "") +
                            std::to_string(odd_numbers(config, own_));
    if (!seen_.insert(key).second) return false;
    const auto metrics = evaluator_.metrics_of(strategy);
    const bool has_room = measure::memory_of(scenario_, strategy).fits();
    tried_.push_back({config, std::move(strategy), metrics, has_room});
    return true;
  }

  const dialect::Dialect& dialect_;
  const Strategy& winner_;
  const Json& own_;  // the job's configuration in this dialect, or null
  Evaluator& evaluator_;
  const Scenario& scenario_;
  std::string algorithm_;
  std::set<std::string> seen_;
  std::vector<Tried> tried_;
  std::exception_ptr refusal_;  // the last one
};

// Returns the algorithm of a job with this winner's configuration: the winner's if a setting
// selects it in the library, which is then part of the output; empty: the library's choice.
std::string settable_algorithm(const Strategy& winner, const Scenario& scenario) {
  std::string algorithm = dialect::kept_algorithm(winner, scenario.cluster);
  if (scenario.cluster.library != Library::kNccl) return algorithm;
  const bool set = !dialect::nccl_setting(winner, scenario.workload, scenario.cluster).empty();
  return set ? algorithm : std::string();
}

}  // namespace

Emitted best_config(const dialect::Dialect& dialect, const Strategy& winner, const Json& own,
                    Evaluator& evaluator) {
  const Scenario& scenario = evaluator.scenario();
  const Seconds wanted = evaluator.step_time(winner);
  const std::string algorithm = settable_algorithm(winner, scenario);
  ConfigSearch search(dialect, winner, own, evaluator, algorithm);
  std::vector<Json> configs;
  bool exact = false;
  try {
    if (auto written =
            dialect::write_config(dialect, winner, scenario.workload, scenario.cluster)) {
      exact = written->exact;
      for (Json config : {written->config, without_private(written->config)}) {
        configs.push_back(beside_own(config, own));
        configs.push_back(std::move(config));
      }
    }
  } catch (const InputError&) {
    // Other configurations may still be possible.
  }
  // If exact, only settings that the winner leaves open are searched.
  const Tried* best_tried = exact ? &search.best(configs, false) : nullptr;
  if (best_tried == nullptr || has_private(best_tried->config)) {
    const auto others = dialect.candidates == nullptr
                            ? std::vector{dialect::least_config(dialect)}
                            : dialect.candidates(winner, scenario.workload, exchanging(scenario),
                                                 partitions_of(evaluator));
    for (const Json& other : others) configs.push_back(beside_own(other, own));
    if (own.is_object()) configs.push_back(own);
    best_tried = &search.best(std::move(configs), true);
  }
  // The framework may have its own keys: search from the job's configuration as well.
  ConfigSearch around(dialect, winner, own, evaluator, algorithm);
  if (exact && own.is_object()) {
    if (const Tried* other = around.best_from(own);
        other != nullptr && gains(*other, *best_tried)) {
      best_tried = other;
    }
  }
  const Tried& found = *best_tried;
  Emitted best;
  best.config = found.config;
  best.strategy = found.strategy;
  best.step_time = found.metrics.step_time;
  best.searched = search.searched() + around.searched();
  if (best.strategy.algorithm != collective::library_algorithm(scenario.cluster)) {
    best.algorithm = best.strategy.algorithm;
    best.setting = dialect::nccl_setting(best.strategy, scenario.workload, scenario.cluster);
  }
  best.difference = difference(winner, best.strategy, scenario);
  best.exact = best.difference.empty() && same_time(best.step_time, wanted);
  if (best.difference.empty() && !best.exact) {
    best.difference = around_the_exchange(winner, best.strategy, scenario);
  }
  return best;
}

}  // namespace syncline::tune
