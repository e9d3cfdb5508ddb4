#include "studies/tune/ways.h"

#include <algorithm>

#include "core/base/error.h"
#include "formats/dialect/write.h"
#include "formats/input/conflicts.h"
#include "studies/explain/advice.h"
#include "studies/tune/search_space.h"

namespace syncline::tune {
namespace {

// Returns "99.9", "99".
std::string percent_number(double value) {
  const std::string text = Json(value).dump();
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

// Returns "fp16", "powersgd", "local_sgd": the word that a user has for it.
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

}  // namespace

Strategy merge_knobs(const Strategy& training, const Strategy& knobs) {
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

WayFinder::WayFinder(const Tuning& tuning, const SettingWriter& settings)
    : scenario_(tuning.scenario),
      search_(tuning.search),
      tuned_(tuning.tuned),
      baseline_(tuned_.baseline.strategy),
      settings_(settings),
      measured_(!has_unmeasured(scenario_, baseline_)) {}

std::vector<TrainingWay> WayFinder::find(const std::optional<Emitted>& said,
                                         const std::vector<Strategy>& same, bool waits) {
  std::vector<TrainingWay> list;
  add_way(list, tuned_.winner().strategy, {}, true);
  for (const Strategy& strategy : scenario_.strategies) add_way(list, strategy, {}, true);
  add_searched(list, search_.compressions, &Strategy::compression);
  add_searched(list, search_.local_sgds, &Strategy::local_sgd);
  if (tuned_.best_changed) add_way(list, tuned_.best_changed->strategy, {}, true);
  const dialect::Dialect* dialect = settings_.dialect();
  const auto [asked, written] = settings_.baseline_entry(said);
  for (auto& change : measure::training_changes(scenario_, asked, &written)) {
    const bool averages = change.strategy.local_sgd.enabled;
    if (averages ? !search_.local_sgds.empty() : !search_.compressions.empty()) continue;
    change.strategy.name = way_words(change.strategy);
    const bool same_framework = dialect != nullptr && dialect->name == asked.dialect;
    add_way(list, change.strategy, same_framework ? change.config : Json(), false);
  }
  if (waits && search_.local_sgds.empty()) {
    if (auto outer = measure::outer_steps(scenario_, asked)) {
      const Json config = nearest_config(outer->strategy);
      outer->strategy.name = way_words(outer->strategy);
      add_way(list, outer->strategy, config, false);
    }
  }
  // The same training with the other knobs of the best that trains as the baseline, the framework's
  // own words first.
  for (TrainingWay& way : list) {
    const Strategy training = way.choices.front().strategy;
    for (auto knobs = same.rbegin(); knobs != same.rend(); ++knobs) {
      Strategy both = merge_knobs(training, *knobs);
      both.name = training.name + ", " + knobs->name;
      if (!is_consistent(both)) continue;
      if (auto set = settings_.settable(both, {})) way.choices.push_back(std::move(*set));
    }
  }
  return list;
}

// Returns the framework's configuration that trains like the strategy, and sets the strategy to
// what that says, such as other buckets; null: there is none.
Json WayFinder::nearest_config(Strategy& strategy) const {
  const dialect::Dialect* dialect = settings_.dialect();
  if (dialect == nullptr || settings_.by_file()) return nullptr;
  try {
    auto written = dialect::write_config(*dialect, strategy, scenario_.workload, scenario_.cluster);
    if (!written || !(written->strategy.local_sgd == strategy.local_sgd)) return nullptr;
    strategy = std::move(written->strategy);
    return std::move(written->config);
  } catch (const InputError&) {
    return nullptr;  // the framework refuses whatever might say it
  }
}

template <typename Value>
void WayFinder::add_searched(std::vector<TrainingWay>& list, const std::vector<Value>& values,
                             Value Strategy::*axis) {
  for (const Value& value : values) {
    Strategy training = baseline_;
    training.*axis = value;
    Strategy strategy = merge_knobs(training, baseline_);
    strategy.name = way_words(strategy);
    if (is_consistent(strategy)) add_way(list, strategy, {}, true);
  }
}

bool WayFinder::is_consistent(const Strategy& strategy) const {
  return !input::conflict_of(strategy, scenario_.workload, scenario_.cluster);
}

// Adds a strategy as a candidate of its way, unless it trains like the baseline, cannot be set, or
// is not comparable.
void WayFinder::add_way(std::vector<TrainingWay>& list, const Strategy& strategy,
                        const Json& config, bool own) {
  if (!settings_.trains_otherwise(strategy)) return;
  const std::string name = way_of(strategy);
  auto way = std::ranges::find(list, name, &TrainingWay::name);
  // A way in the framework's words is not repeated in ours.
  if (way != list.end() && !own && (way->own || config.is_null())) return;
  auto set = settings_.settable(strategy, config);
  if (!set && settings_.is_winner(strategy)) set = settings_.settable_or_unsaid(strategy);
  if (!set) return;
  // Links that were not measured do not compete with measured collectives.
  if (measured_ && has_unmeasured(scenario_, set->strategy)) {
    left_out_.push_back("'" + strategy.name + "'");
    return;
  }
  if (way == list.end()) way = list.insert(list.end(), {name, own, {}});
  way->choices.push_back(std::move(*set));
}

}  // namespace syncline::tune
