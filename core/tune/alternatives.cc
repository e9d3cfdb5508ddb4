#include "core/tune/alternatives.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/dialect/pytorch_apply.h"
#include "core/dialect/write.h"
#include "core/input/conflicts.h"
#include "core/input/strategy_json.h"
#include "core/tune/candidate_pricer.h"
#include "core/tune/search_space.h"

namespace syncline::tune {
namespace {

using measure::Training;

// What takes more to set up has to be that much shorter.
constexpr double kWorthSettingUp = 0.01;

struct Choice {
  Strategy strategy;
  Json config = {};  // of the baseline's dialect, where that says it
};

// A choice as the job then runs it.
struct Settable {
  Strategy strategy;
  std::string how;
  bool configured = true;  // false: by a file of ours, or by none
  Seconds step = 0;
};

// The candidates of one way, the simplest first.
struct Way {
  std::string name;
  bool own = false;  // the scenario goes it by itself
  std::vector<Choice> choices;
};

// "fp16", "powersgd", "local_sgd": what a user would call one thing.
std::string way_of(const Strategy& strategy) {
  return strategy.local_sgd.enabled ? "local_sgd" : strategy.compression.codec;
}

std::string way_words(const Strategy& strategy) {
  const Compression& compression = strategy.compression;
  if (strategy.local_sgd.enabled) {
    return "LocalSGD every " + std::to_string(strategy.local_sgd.period) + " steps";
  }
  if (compression.codec == "dgc") {
    return "DGC " + Json(100 * compression.sparsity.back()).dump() + " %";
  }
  if (compression.codec == "powersgd") {
    return "PowerSGD rank " + std::to_string(compression.rank);
  }
  return compression.codec;
}

// As it stands in the scenario; nothing for one that a search made.
const Json* written_in(const input::Document& document, const std::string& name) {
  for (const Json& item : document.root.at("strategies")) {
    if (item.at("name") == name) return &item;
  }
  return nullptr;
}

// The keys of a strategy that are not the baseline's, to be pasted into a scenario.
std::string own_keys(const Strategy& strategy, const Strategy& baseline) {
  const Json before = input::strategy_json(baseline);
  const Json own = input::strategy_json(strategy);
  std::string text;
  for (const auto& [key, value] : own.items()) {
    const bool named = key == "name" || key == "about";
    if (named || (before.contains(key) && before[key] == value)) continue;
    text += (text.empty() ? "" : ", ") + Json(key).dump() + ": " + value.dump();
  }
  return text;
}

class Finder {
 public:
  Finder(const input::Document& document, const Tuning& tuning, const TuneOptions& options,
         const dialect::Dialect* emit)
      : document_(document),
        scenario_(tuning.scenario),
        tuned_(tuning.tuned),
        baseline_(tuned_.baseline.strategy),
        dialect_(emit != nullptr ? emit : dialect::find_dialect(baseline_.dialect)),
        book_(scenario_.cluster),
        pricer_(scenario_, book_, options.make_executor),
        doubts_(scenario_, tuning.pinned),
        baseline_sway_(doubts_.sway(baseline_)) {}

  std::vector<Alternative> found(const std::optional<Emitted>& emitted) {
    add(baseline_, Training::kSame, tuned_.baseline.metrics.step_time, "");
    add_same(emitted);
    const auto first = static_cast<std::ptrdiff_t>(list_.size());
    for (const Way& way : ways()) add_best(way);
    std::stable_sort(list_.begin() + first, list_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.training, a.step_time) < std::pair(b.training, b.step_time);
    });
    compare();
    return std::move(list_);
  }

 private:
  // The best found that trains the same, and what the framework can say of it.
  void add_same(const std::optional<Emitted>& emitted) {
    const Ranked& same = best_same();
    if (same.strategy.name != baseline_.name) {
      const auto set = settable({same.strategy});
      add(same.strategy, Training::kSame, same.metrics.step_time, set ? set->how : unsaid());
      list_.back().configured = set && set->configured;
    }
    if (!emitted || emitted->exact || dialect_ == nullptr) return;
    if (trains_otherwise(emitted->strategy)) return;
    constexpr double kTold = 1e-3;
    if (emitted->step_time > tuned_.baseline.metrics.step_time * (1 - kTold)) return;
    Strategy nearest = emitted->strategy;
    nearest.name = "the best in " + std::string(dialect_->name);
    add(nearest, Training::kSame, emitted->step_time,
        dialect::config_text(*dialect_, emitted->config));
  }

  std::string unsaid() const { return "cannot be said in " + std::string(dialect_->name); }

  // A search of the scenario's own may have found another training to be the best.
  const Ranked& best_same() const {
    if (!trains_otherwise(tuned_.winner().strategy)) return tuned_.winner();
    const auto& before = tuned_.best_as_before;
    return before && !trains_otherwise(before->strategy) ? *before : tuned_.baseline;
  }

  bool trains_otherwise(const Strategy& strategy) const {
    return measure::training_beside(strategy, baseline_) != Training::kSame;
  }

  std::vector<Way> ways() const {
    std::vector<Way> list;
    const auto add = [&](Choice choice, bool own) {
      const std::string name = way_of(choice.strategy);
      auto way =
          std::find_if(list.begin(), list.end(), [&](const Way& one) { return one.name == name; });
      if (way == list.end()) way = list.insert(list.end(), {name, own, {}});
      // What a framework says of a way, ours need not say again.
      const bool said = !way->choices.empty() && choice.config.is_null();
      if (own || (!way->own && !said)) way->choices.push_back(std::move(choice));
    };
    for (const Strategy& strategy : scenario_.strategies) {
      if (trains_otherwise(strategy)) add({strategy}, true);
    }
    const auto& changed = tuned_.best_changed;
    if (changed && trains_otherwise(changed->strategy)) add({changed->strategy}, true);
    for (auto& change :
         measure::training_changes(scenario_, baseline_, written_in(document_, baseline_.name))) {
      change.strategy.name = way_words(change.strategy);
      add({std::move(change.strategy), std::move(change.config)}, false);
    }
    for (Way& way : list) add_with_knobs_of_same(way);
    return list;
  }

  // The same training with the other knobs of what was found to be the best for the baseline's.
  void add_with_knobs_of_same(Way& way) const {
    const Strategy training = way.choices.front().strategy;
    for (const Alternative& same : list_) {
      if (same.strategy.name == baseline_.name) continue;
      Strategy both = same.strategy;
      both.dialect.clear();
      both.notes.clear();
      both.about.clear();
      both.name = training.name + ", " + same.strategy.name;
      both.compression = training.compression;
      both.local_sgd = training.local_sgd;
      if (!training.overlap) {
        both.overlap = false;
        both.streams = 1;
      }
      if (both.local_sgd.enabled) both.fusion.cycle = 0;
      if (!input::conflict_of(both, scenario_.cluster)) way.choices.push_back({std::move(both)});
    }
  }

  // What the framework can be told, and what a file of ours does where that gains clearly more.
  void add_best(const Way& way) {
    std::optional<Settable> told, otherwise;
    for (const Choice& choice : way.choices) {
      auto set = settable(choice);
      const bool own = find_strategy(scenario_, choice.strategy.name) != nullptr;
      if (!set && own) set = Settable{choice.strategy, unsaid(), false};
      if (!set) continue;
      set->step = pricer_.price(set->strategy).step_time;
      auto& best = set->configured ? told : otherwise;
      if (!best || set->step < best->step * (1 - kWorthSettingUp)) best = std::move(set);
    }
    if (told && otherwise && otherwise->step > told->step * (1 - kClearGain)) otherwise.reset();
    for (const auto& best : {told, otherwise}) {
      if (!best) continue;
      add(best->strategy, measure::training_beside(best->strategy, baseline_), best->step,
          best->how);
      list_.back().configured = best->configured;
    }
  }

  // Nothing where neither the framework nor a file of ours can do it.
  std::optional<Settable> settable(const Choice& choice) const {
    const Strategy& strategy = choice.strategy;
    if (dialect_ == nullptr) return Settable{strategy, own_keys(strategy, baseline_)};
    const bool own = find_strategy(scenario_, strategy.name) != nullptr;
    if (!choice.config.is_null() && dialect_->name == baseline_.dialect) {
      return Settable{strategy, dialect::config_text(*dialect_, choice.config)};
    }
    const Json* written = written_in(document_, strategy.name);
    if (written != nullptr && strategy.dialect == dialect_->name) {
      return Settable{strategy,
                      dialect::config_text(*dialect_, written->value("config", Json::object()))};
    }
    const auto config =
        dialect::write_config(*dialect_, strategy, scenario_.workload, scenario_.cluster);
    if (config && config->exact && (config->algorithm.empty() || !config->setting.empty())) {
      Settable set{own ? strategy : config->strategy,
                   dialect::config_text(*dialect_, config->config) +
                       (config->setting.empty() ? "" : ", with " + config->setting)};
      set.strategy.name = strategy.name;
      return set;
    }
    if (dialect_->apply_obstacle == nullptr) return std::nullopt;
    if (!dialect_->apply_obstacle(strategy, scenario_.workload, scenario_.cluster).empty()) {
      return std::nullopt;
    }
    return Settable{own ? strategy : dialect::as_applied(strategy), file_of(strategy.name), false};
  }

  static std::string file_of(const std::string& name) {
    const char* quote = name.find('\'') == std::string::npos ? "'" : "\"";
    return "model = apply(model, optimizer), from the file of --emit pytorch --python apply.py "
           "--take " +
           (quote + name + quote);
  }

  void add(const Strategy& strategy, Training training, Seconds step, const std::string& how) {
    const auto sway = doubts_.sway(strategy);
    Alternative& row = list_.emplace_back();
    row.strategy = strategy;
    row.training = training;
    row.step_time = step;
    row.sway = sway;
    row.step = measure::interval_of(step, sway);
    row.speedup = tuned_.baseline.metrics.step_time / step;
    row.gain = measure::ratio_interval(row.speedup, baseline_sway_, sway);
    row.set_with = how;
  }

  // Which of them are clearly faster than the best that trains the same.
  void compare() {
    const auto same =
        std::min_element(list_.begin(), list_.end(), [](const auto& a, const auto& b) {
          return std::pair(a.training, a.step_time) < std::pair(b.training, b.step_time);
        });
    for (Alternative& row : list_) {
      row.clearly_faster = row.training != Training::kSame &&
                           row.step_time * (1 + kClearGain) < same->step_time &&
                           measure::chance_shorter(row.step_time, row.sway, same->step_time,
                                                   same->sway) >= kClearChance;
    }
  }

  const input::Document& document_;
  const Scenario& scenario_;
  const Tuned& tuned_;
  const Strategy& baseline_;
  const dialect::Dialect* dialect_;
  collective::PriceBook book_;
  CandidatePricer pricer_;
  measure::Doubts doubts_;
  measure::Sway baseline_sway_;
  std::vector<Alternative> list_;
};

}  // namespace

std::vector<Alternative> alternatives_of(const input::Document& document, const Tuning& tuning,
                                         const TuneOptions& options, const dialect::Dialect* emit) {
  return Finder(document, tuning, options, emit).found(tuning.emitted);
}

const Alternative* best_alternative(const Tuning& tuning, Training training) {
  const Alternative* best = nullptr;
  for (const Alternative& row : tuning.alternatives) {
    if (row.training != training) continue;
    if (best == nullptr || row.step_time < best->step_time) best = &row;
  }
  return best;
}

}  // namespace syncline::tune
