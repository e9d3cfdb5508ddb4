#include "studies/tune/alternatives.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/collective/library.h"
#include "formats/dialect/pytorch_apply.h"
#include "formats/dialect/write.h"
#include "formats/input/conflicts.h"
#include "formats/input/scenario_json.h"
#include "studies/tune/dialect_search.h"
#include "studies/tune/search_space.h"
#include "studies/tune/tuning.h"

namespace syncline::tune {
namespace {

using measure::TrainingChange;

// What takes more to set up has to be that much shorter.
constexpr double kWorthSettingUp = 0.01;

// A choice as the job then runs it.
struct Settable {
  Strategy strategy;
  std::string how;
  std::optional<Emitted> written;  // nothing: by a file of ours, or not at all
  Seconds step = 0;
  bool fits = true;  // into the device's memory
};

bool worth_more(const Settable& one, const Settable& other) {
  if (one.fits != other.fits) return one.fits;
  return one.step < other.step * (1 - kWorthSettingUp);
}

// Rows by kind, those that fit first, the fastest first.
bool goes_first(const Alternative& one, const Alternative& other) {
  return std::tuple(one.training, !one.memory.fits(), one.metrics.step_time) <
         std::tuple(other.training, !other.memory.fits(), other.metrics.step_time);
}

// The candidates of one way, the simplest first.
struct Way {
  std::string name;
  bool own = false;  // the scenario goes it by itself
  std::vector<Settable> choices;
};

// "99.9", "99".
std::string percent_number(double value) {
  const std::string text = Json(value).dump();
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

// "fp16", "powersgd", "local_sgd": what a user would call one thing.
std::string way_of(const Strategy& strategy) {
  if (strategy.local_sgd.outer.any()) return "diloco";
  return strategy.local_sgd.enabled ? "local_sgd" : strategy.compression.codec;
}

std::string way_words(const Strategy& strategy) {
  const Compression& compression = strategy.compression;
  if (strategy.local_sgd.enabled) {
    return std::string(strategy.local_sgd.outer.any() ? "DiLoCo" : "LocalSGD") + " every " +
           std::to_string(strategy.local_sgd.period) + " steps";
  }
  if (compression.codec == "dgc") {
    return "DGC " + percent_number(100 * compression.sparsity.back()) + " %";
  }
  if (compression.codec == "powersgd") {
    return "PowerSGD rank " + std::to_string(compression.rank);
  }
  return compression.codec;
}

// Strategies as they stand in the scenario, by their names.
std::map<std::string, const Json*> written_in(const input::Document& document) {
  std::map<std::string, const Json*> written;
  for (const Json& item : document.root.at("strategies")) {
    written.emplace(item.at("name").get<std::string>(), &item);
  }
  return written;
}

// A training with another strategy's other knobs, in no framework's words.
Strategy joined(const Strategy& training, const Strategy& knobs) {
  Strategy both = knobs;
  both.dialect.clear();
  both.notes.clear();
  both.about.clear();
  both.compression = training.compression;
  both.local_sgd = training.local_sgd;
  if (!training.overlap) {
    both.overlap = false;
    both.streams = 1;
  }
  if (both.local_sgd.enabled) both.fusion.cycle = 0;
  return both;
}

// The keys of a strategy that are not the baseline's, to be pasted into a scenario.
std::string own_keys(const Strategy& strategy, const Strategy& baseline) {
  const Json before = input::strategy_json(baseline);
  const Json own = input::strategy_json(strategy);
  std::string text;
  for (const auto& [key, value] : own.items()) {
    const bool named = key == "name" || key == "about";
    if (named || (before.contains(key) && before[key] == value)) continue;
    text += (text.empty() ? "" : ", ") + Json(key).dump() + ": " + dialect::on_one_line(value);
  }
  return text;
}

class Finder {
 public:
  Finder(const input::Document& document, const Tuning& tuning, const TuneOptions& options,
         const dialect::Dialect* emit)
      : scenario_(tuning.scenario),
        search_(tuning.search),
        tuned_(tuning.tuned),
        baseline_(tuned_.baseline.strategy),
        asked_(emit),
        dialect_(emit != nullptr ? emit : dialect::find_dialect(baseline_.dialect)),
        by_file_(options.by_file && emit != nullptr),
        schemes_(tuning.schemes),
        written_(written_in(document)),
        evaluator_(scenario_, options.make_executor),
        uncertainties_(scenario_, tuning.fit_errors),
        baseline_sensitivity_(uncertainties_.sensitivity(baseline_)),
        measured_(!has_unmeasured(scenario_, baseline_)) {
    for (const auto& each : schemes_) entries_.push_back(each.scheme.entry());
    for (const Json& entry : entries_) written_.emplace(entry["name"], &entry);
  }

  std::vector<Alternative> found(const std::optional<Emitted>& emitted) {
    const auto today = settable(baseline_, {});
    add(baseline_, TrainingChange::kSame, tuned_.baseline.metrics.step_time,
        {{}, "", today ? today->written : std::nullopt});
    said_ = emitted;
    add_same(emitted);
    add_outside();
    add_schemes();
    const auto first = static_cast<std::ptrdiff_t>(list_.size());
    for (const Way& way : ways()) add_best(way);
    std::stable_sort(list_.begin() + first, list_.end(), goes_first);
    compare();
    add_published();
    return std::move(list_);
  }

  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  // The best found that trains the same, and where the framework says it otherwise or not at all,
  // the best that it says.
  void add_same(const std::optional<Emitted>& emitted) {
    const Ranked& same = best_same();
    if (same.strategy.name == baseline_.name) return;
    if (is_scheme(same.strategy)) {
      add(same.strategy, TrainingChange::kSame, same.metrics.step_time,
          settable(same.strategy, {}).value_or(Settable{{}, unsaid(), {}}));
      return;
    }
    said_ = said_of(same.strategy, emitted);
    const auto set = said_ && said_->exact && !by_file_
                         ? Settable{same.strategy, text_of(*dialect_, *said_), said_}
                         : settable(same.strategy, {}).value_or(Settable{{}, unsaid(), {}});
    add(same.strategy, TrainingChange::kSame, same.metrics.step_time, set);
    if (!said_ || said_->exact || trains_otherwise(said_->strategy)) return;
    if (by_file_ && !settable(said_->strategy, {})) return;
    Strategy nearest = said_->strategy;
    nearest.name = "the best in " + std::string(dialect_->name);
    const Seconds step = evaluator_.step_time(nearest);
    const auto fits = [&](const Strategy& own) {
      return measure::memory_of(scenario_, own).fits();
    };
    if (fits(same.strategy) && !fits(nearest)) return;
    // What is slower than the baseline is told of another framework alone.
    constexpr double kTold = 1e-3;
    const bool other = asked_ != nullptr && asked_->name != baseline_.dialect;
    if (!other && step > tuned_.baseline.metrics.step_time * (1 - kTold)) return;
    add(nearest, TrainingChange::kSame, step, {nearest, text_of(*dialect_, *said_), said_});
  }

  // Other schemes that gain 1 % over the baseline, or fit where it does not; of those as fast the
  // one of less memory, or the simpler one.
  void add_schemes() {
    const bool cramped = !list_.front().memory.fits();
    const double most = cramped ? std::numeric_limits<double>::infinity() : 1 - kWorthSettingUp;
    for (const auto& [scheme, strategy] : schemes_) {
      if (is_winner(strategy)) continue;
      const Seconds step = evaluator_.step_time(strategy);
      if (step > tuned_.baseline.metrics.step_time * most) continue;
      const double held = measure::memory_of(scenario_, strategy).total();
      const auto as_good = [&](const Alternative& row) {
        constexpr double kEqual = 1e-3;
        return row.memory.fits() && row.metrics.step_time < step * (1 + kEqual) &&
               row.memory.total() <= held;
      };
      if (std::ranges::any_of(list_, as_good)) continue;
      if (const auto set = settable(strategy, {})) {
        add(strategy, TrainingChange::kSame, step, *set);
      }
    }
  }

  // What gains more than the best that the framework says, by a file of ours.
  void add_outside() {
    if (!tuned_.outside || trains_otherwise(tuned_.outside->strategy)) return;
    const Ranked& best = *tuned_.outside;
    if (best.metrics.step_time > tuned_.winner().metrics.step_time * (1 - kWorthSettingUp)) return;
    const auto fits = [&](const Strategy& own) {
      return measure::memory_of(scenario_, own).fits();
    };
    const auto set = settable(best.strategy, {});
    if (!set || (fits(tuned_.winner().strategy) && !fits(best.strategy))) return;
    add(best.strategy, TrainingChange::kSame, best.metrics.step_time, *set);
  }

  bool is_scheme(const Strategy& strategy) const {
    return std::ranges::any_of(schemes_,
                               [&](const auto& each) { return each.scheme.name == strategy.name; });
  }

  std::string unsaid() const {
    return dialect_ == nullptr ? "" : "cannot be written in " + std::string(dialect_->name);
  }

  // A search of the scenario's own may have found another training to be the best.
  const Ranked& best_same() const {
    if (!trains_otherwise(tuned_.winner().strategy)) return tuned_.winner();
    const auto& before = tuned_.best_as_before;
    return before && !trains_otherwise(before->strategy) ? *before : tuned_.baseline;
  }

  // What the framework says of a strategy; nothing where it has no words for any.
  std::optional<Emitted> said_of(const Strategy& strategy, const std::optional<Emitted>& emitted) {
    if (dialect_ == nullptr || dialect_->suggest == nullptr) return std::nullopt;
    if (emitted && is_winner(strategy)) return emitted;
    Evaluator model(scenario_);
    try {
      return best_config(*dialect_, strategy, own_config(), model);
    } catch (const InputError&) {
      return std::nullopt;  // the framework refuses whatever might say it
    }
  }

  // The baseline's configuration in that framework; null: it is in another.
  Json own_config() const {
    const auto own = written_.find(baseline_.name);
    const bool known = own != written_.end() && dialect_->name == baseline_.dialect;
    return known ? own->second->value("config", Json()) : Json();
  }

  bool is_winner(const Strategy& strategy) const {
    return strategy.name == tuned_.winner().strategy.name;
  }

  // The user's, or what the first line names: it stays as it was evaluated.
  bool is_given(const Strategy& strategy) const {
    return is_winner(strategy) || written_.contains(strategy.name);
  }

  bool trains_otherwise(const Strategy& strategy) const {
    return measure::training_beside(strategy, baseline_) != TrainingChange::kSame;
  }

  // Those of the scenario's strategies and search, else what is worth trying: of an axis that the
  // search names, nothing else.
  std::vector<Way> ways() {
    std::vector<Way> list;
    add_way(list, tuned_.winner().strategy, {}, true);
    for (const Strategy& strategy : scenario_.strategies) add_way(list, strategy, {}, true);
    add_searched(list, search_.compressions, &Strategy::compression);
    add_searched(list, search_.local_sgds, &Strategy::local_sgd);
    if (tuned_.best_changed) add_way(list, tuned_.best_changed->strategy, {}, true);
    const auto [asked, written] = in_framework();
    for (auto& change : measure::training_changes(scenario_, asked, &written)) {
      const bool averages = change.strategy.local_sgd.enabled;
      if (averages ? !search_.local_sgds.empty() : !search_.compressions.empty()) continue;
      change.strategy.name = way_words(change.strategy);
      const bool told = dialect_ != nullptr && dialect_->name == asked.dialect;
      add_way(list, change.strategy, told ? change.config : Json(), false);
    }
    if (measure::waits_for_network(best_same().metrics) && search_.local_sgds.empty()) {
      if (auto outer = measure::outer_steps(scenario_, asked)) {
        outer->strategy.name = way_words(outer->strategy);
        add_way(list, outer->strategy, Json(), false);
      }
    }
    for (Way& way : list) add_with_knobs_of_same(way);
    return list;
  }

  // The baseline as the framework has it, and how that is written: where another one is asked for,
  // by the best that it says.
  std::pair<Strategy, Json> in_framework() const {
    const auto own = written_.find(baseline_.name);
    if (dialect_ == nullptr || dialect_->name == baseline_.dialect || !said_ ||
        trains_otherwise(said_->strategy)) {
      return {baseline_, own == written_.end() ? Json::object() : *own->second};
    }
    Strategy asked = baseline_;
    asked.dialect = dialect_->name;
    return {asked, {{"dialect", dialect_->name}, {"config", said_->config}}};
  }

  template <typename Value>
  void add_searched(std::vector<Way>& list, const std::vector<Value>& values,
                    Value Strategy::*axis) {
    for (const Value& value : values) {
      Strategy training = baseline_;
      training.*axis = value;
      Strategy strategy = joined(training, baseline_);
      strategy.name = way_words(strategy);
      if (fits_together(strategy)) add_way(list, strategy, {}, true);
    }
  }
  bool fits_together(const Strategy& strategy) const {
    return !input::conflict_of(strategy, scenario_.workload, scenario_.cluster);
  }

  void add_way(std::vector<Way>& list, const Strategy& strategy, const Json& config, bool own) {
    if (!trains_otherwise(strategy)) return;
    const std::string name = way_of(strategy);
    auto way = std::ranges::find(list, name, &Way::name);
    // What a framework says of a way, ours need not say again.
    if (way != list.end() && !own && (way->own || config.is_null())) return;
    auto set = settable(strategy, config);
    if (!set && is_winner(strategy)) set = Settable{strategy, unsaid(), {}};
    if (!set) return;
    // Where collectives were measured, links that nobody measured do not compete with them.
    if (measured_ && has_unmeasured(scenario_, set->strategy)) {
      left_out_.push_back("'" + strategy.name + "'");
      return;
    }
    if (way == list.end()) way = list.insert(list.end(), {name, own, {}});
    way->choices.push_back(std::move(*set));
  }

  // The same training with the other knobs of what was found to be the best for the baseline's, the
  // framework's own words first.
  void add_with_knobs_of_same(Way& way) {
    const Strategy training = way.choices.front().strategy;
    for (std::size_t i = list_.size(); i-- > 1;) {
      Strategy both = joined(training, list_[i].strategy);
      both.name = training.name + ", " + list_[i].strategy.name;
      if (!fits_together(both)) continue;
      if (auto set = settable(both, {})) way.choices.push_back(std::move(*set));
    }
  }

  // What the framework can be told, and what a file of ours does where that gains clearly more.
  void add_best(const Way& way) {
    std::optional<Settable> told, otherwise;
    for (Settable set : way.choices) {
      set.step = evaluator_.step_time(set.strategy);
      set.fits = measure::memory_of(scenario_, set.strategy).fits();
      auto& best = set.written ? told : otherwise;
      const bool named = best && is_winner(best->strategy);
      if (!best || (!named && worth_more(set, *best))) best = std::move(set);
    }
    if (told && otherwise && !is_winner(otherwise->strategy) && told->fits >= otherwise->fits &&
        otherwise->step > told->step * (1 - kClearGain)) {
      otherwise.reset();
    }
    for (const auto& best : {told, otherwise}) {
      if (!best) continue;
      add(best->strategy, measure::training_beside(best->strategy, baseline_), best->step, *best);
      list_.back().plain = way.choices.front().strategy.name;
    }
  }

  // Nothing where neither the framework nor a file of ours can do it. `config`: what says it in the
  // framework, where that is known.
  std::optional<Settable> settable(const Strategy& strategy, const Json& config) const {
    if (by_file_) {
      const auto& refusal = dialect_->apply_refusal;
      const bool refused =
          refusal == nullptr || !refusal(strategy, scenario_.workload, scenario_.cluster).empty();
      if (refused) return std::nullopt;
      return Settable{is_given(strategy) ? strategy : dialect::as_applied(strategy),
                      dialect::applied_by(strategy.name),
                      {}};
    }
    if (const auto own = written_.find(strategy.name); own != written_.end()) {
      if (auto set = set_as_written(strategy, *own->second)) return set;
    }
    if (dialect_ == nullptr) return Settable{strategy, own_keys(strategy, baseline_), {}};
    if (!config.is_null()) return set_by(*dialect_, strategy, config);
    if (auto set = set_as_said(strategy)) return set;
    if (dialect_->apply_refusal == nullptr) return std::nullopt;
    if (!dialect_->apply_refusal(strategy, scenario_.workload, scenario_.cluster).empty()) {
      return std::nullopt;
    }
    return Settable{is_given(strategy) ? strategy : dialect::as_applied(strategy),
                    dialect::applied_by(strategy.name),
                    {}};
  }

  // By a configuration that comes to this strategy, and the library's variable beside it.
  Settable set_by(const dialect::Dialect& dialect, const Strategy& strategy,
                  const Json& config) const {
    Emitted written;
    written.config = config;
    written.strategy = strategy;
    written.exact = true;
    if (strategy.algorithm != collective::library_algorithm(scenario_.cluster)) {
      written.algorithm = strategy.algorithm;
      written.setting = dialect::nccl_setting(strategy, scenario_.workload, scenario_.cluster);
    }
    return {strategy, text_of(dialect, written), written};
  }

  // In the words of the framework that the scenario gives it, unless another one was asked for.
  std::optional<Settable> set_as_written(const Strategy& strategy, const Json& written) const {
    const dialect::Dialect* own = dialect::find_dialect(strategy.dialect);
    if (own == nullptr || (asked_ != nullptr && own != asked_)) return std::nullopt;
    Settable set = set_by(*own, strategy, written.value("config", Json::object()));
    if (own != dialect_) set.how = "in " + std::string(own->name) + ": " + set.how;
    return set;
  }

  std::optional<Settable> set_as_said(const Strategy& strategy) const {
    try {
      const auto config =
          dialect::write_config(*dialect_, strategy, scenario_.workload, scenario_.cluster);
      if (!config || !config->exact) return std::nullopt;
      if (!config->algorithm.empty() && config->setting.empty()) return std::nullopt;
      // What encodes nothing here is said by leaving it out.
      if (trains_otherwise(strategy) != trains_otherwise(config->strategy)) return std::nullopt;
      Strategy said = is_given(strategy) ? strategy : config->strategy;
      said.name = strategy.name;
      return set_by(*dialect_, said, config->config);
    } catch (const InputError&) {
      return std::nullopt;  // the framework refuses whatever might say it
    }
  }

  static std::string text_of(const dialect::Dialect& dialect, const Emitted& said) {
    return dialect::config_text(dialect, said.config) +
           (!said.setting.empty()     ? ", with " + said.setting
            : !said.algorithm.empty() ? ", with collectives by " + said.algorithm
                                      : "");
  }

  void add(const Strategy& strategy, TrainingChange training, Seconds step, const Settable& set) {
    const auto sensitivity = uncertainties_.sensitivity(strategy);
    Alternative& row = list_.emplace_back();
    row.strategy = strategy;
    row.training = training;
    row.metrics.step_time = step;
    row.sensitivity = sensitivity;
    row.memory = measure::memory_of(scenario_, strategy);
    row.step = measure::interval_of(step, sensitivity);
    row.speedup = tuned_.baseline.metrics.step_time / step;
    row.gain = measure::ratio_interval(row.speedup, baseline_sensitivity_, sensitivity);
    row.set_with = set.how;
    row.written = set.written;
    if (row.written) row.written->step_time = step;
  }

  // Which of them are clearly faster than the baseline and the best that trains the same.
  void compare() {
    const auto same = std::ranges::min_element(list_, goes_first);
    for (Alternative& row : list_) {
      row.clearly_faster =
          row.training != TrainingChange::kSame && row.memory.fits() && row.gain.low > 1 &&
          row.metrics.step_time * (1 + kClearGain) < same->metrics.step_time &&
          measure::chance_shorter(row.metrics.step_time, row.sensitivity, same->metrics.step_time,
                                  same->sensitivity) >= kClearChance;
    }
  }

  void add_published() {
    const auto accuracy_of = [&](const std::string& name) -> std::optional<double> {
      for (const Published& row : scenario_.published) {
        if (row.strategy == name && row.sweep.empty() && row.accuracy) return row.accuracy;
      }
      return std::nullopt;
    };
    const auto before = accuracy_of(baseline_.name);
    for (Alternative& row : list_) {
      const auto end = accuracy_of(row.strategy.name);
      if (end) row.outcome = TrainingResult{"accuracy", *end, {}, before, true};
    }
  }

  const Scenario& scenario_;
  const Search& search_;
  const Tuned& tuned_;
  const Strategy& baseline_;
  const dialect::Dialect* asked_;    // by --emit
  const dialect::Dialect* dialect_;  // that, or the baseline's
  bool by_file_;                     // what a Python file carries out, and nothing else
  const std::vector<measure::ReadScheme>& schemes_;
  std::deque<Json> entries_;  // of the schemes
  std::map<std::string, const Json*> written_;
  Evaluator evaluator_;
  measure::Uncertainties uncertainties_;
  measure::Sensitivity baseline_sensitivity_;
  bool measured_;                // what the baseline's collectives take
  std::optional<Emitted> said_;  // of the best that trains the same, by the framework
  std::vector<std::string> left_out_;
  std::vector<Alternative> list_;
};

}  // namespace

void add_alternatives(const input::Document& document, const TuneOptions& options,
                      const dialect::Dialect* emit, const std::optional<Emitted>& said,
                      Tuning& tuning) {
  Finder finder(document, tuning, options, emit);
  tuning.alternatives = finder.found(said);
  auto& left_out = tuning.tuned.unmeasured;
  left_out.insert(left_out.end(), finder.left_out().begin(), finder.left_out().end());
}

const Alternative* best_alternative(const Tuning& tuning, TrainingChange training, bool clearly) {
  const Alternative* best = nullptr;
  for (const Alternative& row : tuning.alternatives) {
    if (row.training != training || (clearly && !row.clearly_faster)) continue;
    if (best == nullptr || goes_first(row, *best)) best = &row;
  }
  return best;
}

}  // namespace syncline::tune
