#include "studies/tune/dialect_search.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/collective/library.h"
#include "core/metrics/phases.h"
#include "core/plan.h"
#include "formats/dialect/changes.h"
#include "formats/dialect/write.h"
#include "formats/input/conflicts.h"
#include "formats/input/scenario_json.h"
#include "studies/rows/memory.h"
#include "studies/tune/configuration.h"
#include "studies/tune/ranking.h"
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
      if (!tensor.frozen) places.push_back(static_cast<int>(tensors.size()));
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

// Returns a strategy's knobs without the names of things.
Strategy unnamed(Strategy strategy) {
  strategy.name.clear();
  strategy.dialect.clear();
  strategy.notes.clear();
  strategy.about.clear();
  return strategy;
}

// Returns a key of the settings that determine a strategy's plan, to skip equal ones.
std::string plan_key(const plan::Plan& plan, const Strategy& strategy) {
  Strategy knobs = unnamed(strategy);
  set_fusion(knobs, {});
  knobs.fusion.cycle = strategy.fusion.cycle;
  knobs.fusion.sum_format = strategy.fusion.sum_format;
  std::string key = input::strategy_json(knobs).dump();
  for (const auto& bucket : plan.buckets) {
    key += std::to_string(bucket.ready) + ":" + std::to_string(bucket.tensors.size()) + " ";
  }
  return key;
}

// Returns the plan long after all ramps, of LocalSGD that of the steps around an averaging.
plan::Plan exchanging_plan(const Strategy& strategy, const Scenario& scenario) {
  const auto phase = measure::planned_phases(strategy, {}).front();
  return plan::make_plan(scenario.workload, scenario.cluster, strategy, phase.point);
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
  return dialect::plan_difference(exchanging_plan(wanted, scenario),
                                  exchanging_plan(found, scenario));
}

// Returns a difference outside the steady exchange: at some steps of the training, or in step time.
std::string around_the_exchange(const Strategy& wanted, const Strategy& found,
                                const Scenario& scenario) {
  for (const auto& phase : measure::planned_phases(wanted, scenario.training)) {
    const auto plan_of = [&](const Strategy& strategy) {
      return plan::make_plan(scenario.workload, scenario.cluster, strategy, phase.point);
    };
    const std::string text = dialect::plan_difference(plan_of(wanted), plan_of(found));
    if (!text.empty()) return "at some steps of the training " + text;
  }
  return dialect::time_difference(exchanging_plan(wanted, scenario),
                                  exchanging_plan(found, scenario));
}

bool same_time(Seconds a, Seconds b) { return std::abs(a - b) <= 1e-9 * std::max(a, b); }

// Counts the winner's choices for the training (compression, averaging, sums) that a strategy has.
int kept_training(const Strategy& winner, const Strategy& strategy) {
  return (winner.compression.codec == strategy.compression.codec) +
         (winner.local_sgd.enabled == strategy.local_sgd.enabled) +
         !measure::rounds_sums(strategy, winner);
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
const Tried& best_of(const std::deque<Tried>& tried, const Strategy& winner, const Json& own) {
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
  const Seconds most = least_of(left) * (1 + kRoundness);
  leave_out(kRoundness, [&](const Tried& each) { return odd_numbers(each.config, own) > 0; });
  const Seconds least = least_of(left);
  leave_out(kEqual, [&](const Tried& each) {
    return step_of(&each) > std::max(least, std::min(most, least * (1 + kEqual)));
  });
  return *std::ranges::min(left, {}, [](const Tried* each) { return each->metrics.collectives; });
}

// Returns each single setting of the configurations as a patch, at most `most`, spread evenly.
std::vector<Json> single_settings(const std::vector<Json>& configs, std::size_t most) {
  std::vector<Json> all;
  std::set<std::string> seen;
  const std::function<void(const Json&, const std::function<Json(Json)>&)> walk =
      [&](const Json& object, const std::function<Json(Json)>& inside) {
        for (const auto& item : object.items()) {
          const std::string key = item.key();
          const auto at = [&](Json value) { return inside({{key, std::move(value)}}); };
          if (item.value().is_object()) {
            walk(item.value(), at);
          } else if (Json patch = at(item.value()); seen.insert(patch.dump()).second) {
            all.push_back(std::move(patch));
          }
        }
      };
  for (const Json& config : configs) walk(config, [](Json value) { return value; });
  std::vector<Json> patches;
  for (const std::size_t i : spread_indices(all.size(), most)) patches.push_back(all[i]);
  return patches;
}

// Removes the keys of a configuration, those of its objects one by one, from another one.
void remove_settings(const Json& config, Json& other) {
  if (!other.is_object()) return;
  for (const auto& item : config.items()) {
    const auto found = other.find(item.key());
    if (found == other.end()) continue;
    if (item.value().is_object() && found->is_object()) {
      remove_settings(item.value(), *found);
    } else {
      other.erase(found);
    }
  }
}

Json patched(Json config, const Json& patch) {
  config.merge_patch(patch);
  return config;
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

  // Evaluates configurations, and climbs from the best of all so far.
  void climb_from_best(const std::vector<Json>& configs, bool other_buckets) {
    for (const Json& config : configs) add(config);
    if (!tried_.empty()) climb(Json(best().config), other_buckets);
  }

  // Sets configurations. Each single setting in them is tried as a change too.
  void set_candidates(const std::vector<Json>& configs) {
    constexpr std::size_t kMost = 96;
    settings_ = single_settings(configs, kMost);
  }

  // Climbs from a configuration: takes the change that gains most, until none does. Changes keep
  // the training and, if `other_buckets` is false, the buckets.
  void climb(const Json& config, bool other_buckets) {
    for (const Tried* here = add(config); here != nullptr;) {
      const Tried* next = here;
      for (const Json& patch : free_changes(here->config, other_buckets)) {
        if (work_ > kMostWork) return;
        const Tried* tried = add(patched(here->config, patch));
        if (tried != nullptr && goes_before(*tried, *next)) next = tried;
      }
      if (next == here) return;
      here = next;
    }
  }

  // Climbs from the best by every two changes together, as far as that is little work. Throws
  // InputError if the framework refused all configurations.
  void climb_by_pairs() {
    if (tried_.empty()) std::rethrow_exception(refusal_);
    for (std::set<std::string> from; from.insert(best().config.dump()).second;) {
      const Json found = best().config;
      const std::vector<Json> patches = free_changes(found, true);
      for (std::size_t i = 0; i < patches.size(); ++i) {
        const Json first = patched(found, patches[i]);
        for (std::size_t j = i + 1; j < patches.size(); ++j) {
          if (work_ > kMostWork) return;
          add(patched(first, patches[j]));
        }
      }
      climb(best().config, true);
    }
  }

  const Tried& best() const { return best_of(tried_, winner_, own_); }
  // Returns the shortest step of those that fit, of all if none does.
  Seconds least_step() const {
    const Tried* least = &tried_.front();
    for (const Tried& each : tried_) {
      if (goes_before(each, *least)) least = &each;
    }
    return step_of(least);
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
      const bool idle =
          change.kind == ChangeKind::kAccumulation && scenario_.workload.micro_batches == 1;
      if (!training && !held && !idle) patches.push_back(change.patch);
    }
    if (other_buckets) patches.insert(patches.end(), settings_.begin(), settings_.end());
    return patches;
  }

  // Returns true if `one` keeps more of the winner's training, fits better, or is shorter.
  bool goes_before(const Tried& one, const Tried& other) const {
    constexpr double kSameTime = 1e-9;
    const int kept = kept_training(winner_, one.strategy);
    const int other_kept = kept_training(winner_, other.strategy);
    if (kept != other_kept) return kept > other_kept;
    if (one.fits != other.fits) return one.fits;
    return step_of(&one) < step_of(&other) * (1 - kSameTime);
  }

  // Evaluates a configuration, unless one of the same plan was; nullptr: the framework refuses it.
  const Tried* add(const Json& config) {
    const auto [asked, is_new] = asked_.try_emplace(config.dump());
    Answer& answer = asked->second;
    std::optional<Strategy> strategy;
    try {
      if (is_new) strategy = reading_of(config);
    } catch (const InputError&) {
      answer.refusal = std::current_exception();
    }
    if (answer.refusal) refusal_ = answer.refusal;
    if (strategy) answer.tried = tried_with(config, *std::move(strategy));
    return answer.tried;
  }

  // Reads a configuration. Throws InputError if the framework refuses it.
  Strategy reading_of(const Json& config) const {
    Strategy strategy = dialect::reading_of(dialect_, config, scenario_.workload, scenario_.cluster,
                                            {.algorithm = algorithm_})
                            .strategy;
    // Settings of one framework fit together; an additional algorithm may not.
    const auto conflict = input::conflict_of(strategy, scenario_.workload, scenario_.cluster);
    if (conflict && !algorithm_.empty()) throw InputError(conflict->key + ": " + conflict->why);
    strategy.name = dialect_.name;
    return strategy;
  }

  // Evaluates a configuration that was read, unless one of the same plan was.
  const Tried* tried_with(const Json& config, Strategy strategy) {
    // Most settings leave the strategy as it is, and planning takes longer than reading.
    const auto [planned, fresh] =
        planned_.try_emplace(input::strategy_json(unnamed(strategy)).dump());
    auto& [of_plan, operations] = planned->second;
    if (fresh) {
      const plan::Plan plan = exchanging_plan(strategy, scenario_);
      of_plan = plan_key(plan, strategy);
      operations = plan.ops.size();
    }
    const std::string key =
        of_plan + (has_private(config) ? "_" : "") + std::to_string(odd_numbers(config, own_));
    const auto [seen, is_new] = seen_.emplace(key, nullptr);
    if (!is_new) return seen->second;
    work_ += operations;
    // The same plan in other words has the same figures.
    const Tried*& alike = plans_[of_plan];
    const auto metrics = alike != nullptr ? alike->metrics : evaluator_.metrics_of(strategy);
    const bool has_room =
        alike != nullptr ? alike->fits : measure::memory_of(scenario_, strategy).fits();
    tried_.push_back({config, std::move(strategy), metrics, has_room});
    if (alike == nullptr) alike = &tried_.back();
    return seen->second = &tried_.back();
  }

  // Operations of all plans that were evaluated; climbing ends at the most.
  static constexpr std::size_t kMostWork = 1'000'000;

  const dialect::Dialect& dialect_;
  const Strategy& winner_;
  const Json& own_;  // the job's configuration in this dialect, or null
  Evaluator& evaluator_;
  const Scenario& scenario_;
  std::string algorithm_;
  std::vector<Json> settings_;
  struct Answer {
    const Tried* tried = nullptr;
    std::exception_ptr refusal = {};
  };
  std::unordered_map<std::string, Answer> asked_;  // by configuration
  // Keys and operations of plans, by strategy.
  std::unordered_map<std::string, std::pair<std::string, std::size_t>> planned_;
  std::unordered_map<std::string, const Tried*> plans_;  // the first of each plan, by its key
  std::unordered_map<std::string, const Tried*> seen_;   // by plan and words
  std::deque<Tried> tried_;
  std::size_t work_ = 0;
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

// Returns configurations that express the winner or come near, and if they do exactly.
std::pair<std::vector<Json>, bool> written_configs(const dialect::Dialect& dialect,
                                                   const Strategy& winner, const Json& own,
                                                   const Scenario& scenario) {
  std::vector<Json> configs;
  bool exact = false;
  try {
    const auto written =
        dialect::write_config(dialect, winner, scenario.workload, scenario.cluster);
    if (!written) return {configs, false};
    exact = written->exact;
    for (const Json& config : {written->config, without_private(written->config)}) {
      configs.push_back(beside_own(config, own));
      configs.push_back(config);
    }
  } catch (const InputError&) {
    // Other configurations may still be possible.
  }
  return {configs, exact};
}

// Searches the framework's own keys: from the best of its candidates if they are `needed`, from the
// job's own configuration and from the others.
void search_space(const dialect::Dialect& dialect, const Strategy& winner, const Json& own,
                  const std::vector<Json>& starts, Evaluator& evaluator, bool needed,
                  ConfigSearch& search) {
  constexpr std::size_t kFewGradients = 600;
  const Scenario& scenario = evaluator.scenario();
  std::vector<Json> candidates;
  if (needed || scenario.workload.tensors.size() <= kFewGradients) {
    candidates = dialect.candidates == nullptr
                     ? std::vector{dialect::least_config(dialect)}
                     : dialect.candidates(winner, scenario.workload, exchanging(scenario),
                                          partitions_of(evaluator));
    search.set_candidates(candidates);
  }
  // A key that candidates leave out has its default, not the job's own value.
  Json others = own;
  for (const Json& config : candidates) remove_settings(config, others);
  constexpr std::size_t kFew = 16, kLittleWork = 20'000;
  const bool few = candidates.size() <= kFew;
  const bool quick = candidates.size() * scenario.workload.tensors.size() <= kLittleWork;
  if (needed || few || quick) {
    for (Json& config : candidates) config = beside_own(config, others);
    if (own.is_object()) candidates.push_back(own);
    search.climb_from_best(candidates, true);
  }
  if (few) {
    for (const Json& config : candidates) search.climb(config, true);
  }
  if (own.is_object()) search.climb(own, true);
  for (const Json& start : starts) search.climb(start, true);
  search.climb_by_pairs();
}

}  // namespace

Emitted best_config(const dialect::Dialect& dialect, const Strategy& winner, const Json& own,
                    Evaluator& evaluator, const std::vector<Json>& starts) {
  const Scenario& scenario = evaluator.scenario();
  const Seconds wanted = evaluator.step_time(winner);
  const std::string algorithm = settable_algorithm(winner, scenario);
  ConfigSearch search(dialect, winner, own, evaluator, algorithm);
  const auto [written, exact] = written_configs(dialect, winner, own, scenario);
  // If exact, only settings that the winner leaves open are searched.
  search.climb_from_best(written, !exact);
  std::optional<Tried> said;
  if (exact && search.searched() > 0 && !has_private(search.best().config)) said = search.best();
  if (!said || own.is_object() || !starts.empty()) {
    search_space(dialect, winner, own, starts, evaluator, !said, search);
  }
  // Words for the winner stay unless others gain what could be measured.
  const bool kept = said && said->fits >= search.best().fits &&
                    said->metrics.step_time <= std::max(search.best().metrics.step_time,
                                                        search.least_step() * (1 + kEqual));
  const Tried& found = kept ? *said : search.best();
  Emitted best;
  best.config = found.config;
  best.strategy = found.strategy;
  best.step_time = found.metrics.step_time;
  best.searched = search.searched();
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
