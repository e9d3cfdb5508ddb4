#include "studies/tune/alternatives.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "studies/tune/ways.h"

namespace syncline::tune {
namespace {

using measure::TrainingChange;

// Gain in step time that is worth a larger effort of setting up.
constexpr double kWorthSettingUp = 0.01;

bool worth_more(const Settable& one, const Settable& other) {
  if (one.fits != other.fits) return one.fits;
  return one.step < other.step * (1 - kWorthSettingUp);
}

// Returns true if `one` goes first: by kind, then rows that fit, then the fastest.
bool goes_first(const Alternative& one, const Alternative& other) {
  return std::tuple(one.training, !one.memory.fits(), one.metrics.step_time) <
         std::tuple(other.training, !other.memory.fits(), other.metrics.step_time);
}

class Finder {
 public:
  Finder(const Tuning& tuning, const TuneOptions& options, const SettingWriter& settings)
      : scenario_(tuning.scenario),
        tuned_(tuning.tuned),
        baseline_(tuned_.baseline.strategy),
        schemes_(tuning.schemes),
        settings_(settings),
        evaluator_(scenario_, options.make_executor),
        uncertainties_(scenario_, tuning.fit_errors) {}

  // Returns the baseline, others that train the same, and the best of each way that changes the
  // training, these sorted. `emitted`: the framework's configuration for the winner.
  std::vector<Alternative> find(const std::optional<Emitted>& emitted, WayFinder& ways) {
    const auto today = settings_.settable(baseline_, {});
    add(baseline_, TrainingChange::kSame, tuned_.baseline.metrics.step_time,
        {{}, "", today ? today->written : std::nullopt}, tuned_.baseline.sensitivity);
    const auto emitted_same = add_same(emitted);
    add_outside();
    add_schemes();
    std::vector<Strategy> same;
    for (std::size_t i = 1; i < list_.size(); ++i) same.push_back(list_[i].strategy);
    const auto first = static_cast<std::ptrdiff_t>(list_.size());
    const bool waits = measure::waits_for_network(best_same().metrics);
    for (const TrainingWay& way : ways.find(emitted_same, same, waits)) add_best(way);
    std::stable_sort(list_.begin() + first, list_.end(), goes_first);
    compare();
    add_published();
    return std::move(list_);
  }

 private:
  // Adds the best found that trains the same, and the framework's nearest if it says that
  // otherwise or not at all. Returns the framework's words.
  std::optional<Emitted> add_same(const std::optional<Emitted>& emitted) {
    const Ranked& same = best_same();
    if (same.strategy.name == baseline_.name) return emitted;
    std::optional<measure::Sensitivity> known;
    if (&same == &tuned_.winner()) known = same.sensitivity;
    if (is_scheme(same.strategy)) {
      add(same.strategy, TrainingChange::kSame, same.metrics.step_time,
          settings_.settable_or_unsaid(same.strategy), known);
      return emitted;
    }
    const auto words = settings_.find_words(same.strategy, emitted);
    const bool exact = words && words->exact && !settings_.by_file();
    const auto set =
        exact ? Settable{same.strategy,
                         setting_text(*settings_.dialect(), *words, scenario_.workload.parallel),
                         words}
              : settings_.settable_or_unsaid(same.strategy);
    add(same.strategy, TrainingChange::kSame, same.metrics.step_time, set, known);
    if (words && !words->exact) add_nearest(same.strategy, *words);
    return words;
  }

  // Adds the best that the framework says, if it fits or the exact one does not.
  void add_nearest(const Strategy& same, const Emitted& emitted) {
    if (settings_.trains_otherwise(emitted.strategy)) return;
    if (settings_.by_file() && !settings_.settable(emitted.strategy, {})) return;
    const dialect::Dialect& dialect = *settings_.dialect();
    Strategy nearest = emitted.strategy;
    nearest.name = "the best in " + std::string(dialect.name);
    const Seconds step = evaluator_.step_time(nearest);
    const auto fits = [&](const Strategy& own) {
      return measure::memory_of(scenario_, own).fits();
    };
    if (fits(same) && !fits(nearest)) return;
    // A row slower than the baseline is listed only for another framework.
    constexpr double kTold = 1e-3;
    const dialect::Dialect* asked = settings_.asked_dialect();
    const bool other = asked != nullptr && asked->name != baseline_.dialect;
    if (!other && step > tuned_.baseline.metrics.step_time * (1 - kTold)) return;
    add(nearest, TrainingChange::kSame, step,
        {nearest, setting_text(dialect, emitted, scenario_.workload.parallel), emitted});
  }

  // Adds other schemes that gain 1 % over the baseline, or fit if it does not. Among equally fast
  // ones, the one of less memory or the simpler one is added.
  void add_schemes() {
    const bool cramped = !list_.front().memory.fits();
    const double most = cramped ? std::numeric_limits<double>::infinity() : 1 - kWorthSettingUp;
    for (const auto& [scheme, strategy] : schemes_) {
      if (settings_.is_winner(strategy)) continue;
      const Seconds step = evaluator_.step_time(strategy);
      if (step > tuned_.baseline.metrics.step_time * most) continue;
      const double held = measure::memory_of(scenario_, strategy).total();
      const auto as_good = [&](const Alternative& row) {
        constexpr double kEqual = 1e-3;
        return row.memory.fits() && row.metrics.step_time < step * (1 + kEqual) &&
               row.memory.total() <= held;
      };
      if (std::ranges::any_of(list_, as_good)) continue;
      if (const auto set = settings_.settable(strategy, {})) {
        add(strategy, TrainingChange::kSame, step, *set);
      }
    }
  }

  // Adds the best by a file of ours if it gains more than the best that the framework says.
  void add_outside() {
    if (!tuned_.outside || settings_.trains_otherwise(tuned_.outside->strategy)) return;
    const Ranked& best = *tuned_.outside;
    if (best.metrics.step_time > tuned_.winner().metrics.step_time * (1 - kWorthSettingUp)) return;
    const auto fits = [&](const Strategy& own) {
      return measure::memory_of(scenario_, own).fits();
    };
    const auto set = settings_.settable(best.strategy, {});
    if (!set || (fits(tuned_.winner().strategy) && !fits(best.strategy))) return;
    add(best.strategy, TrainingChange::kSame, best.metrics.step_time, *set);
  }

  bool is_scheme(const Strategy& strategy) const {
    return std::ranges::any_of(schemes_,
                               [&](const auto& each) { return each.scheme.name == strategy.name; });
  }

  // Returns the best that trains the same: a search of the scenario's own may have found another
  // training to be the best.
  const Ranked& best_same() const {
    if (!settings_.trains_otherwise(tuned_.winner().strategy)) return tuned_.winner();
    const auto& before = tuned_.best_as_before;
    return before && !settings_.trains_otherwise(before->strategy) ? *before : tuned_.baseline;
  }

  // Adds the way's best choice by the framework's settings, and its best by a file of ours if it
  // gains clearly more.
  void add_best(const TrainingWay& way) {
    std::optional<Settable> in_framework, otherwise;
    for (Settable set : way.choices) {
      set.step = evaluator_.step_time(set.strategy);
      set.fits = measure::memory_of(scenario_, set.strategy).fits();
      auto& best = set.written ? in_framework : otherwise;
      const bool named = best && settings_.is_winner(best->strategy);
      if (!best || (!named && worth_more(set, *best))) best = std::move(set);
    }
    if (in_framework && otherwise && !settings_.is_winner(otherwise->strategy) &&
        in_framework->fits >= otherwise->fits &&
        otherwise->step > in_framework->step * (1 - kClearGain)) {
      otherwise.reset();
    }
    for (const auto& best : {in_framework, otherwise}) {
      if (!best) continue;
      add(best->strategy, measure::training_beside(best->strategy, baseline_), best->step, *best);
      list_.back().plain = way.choices.front().strategy.name;
    }
  }

  // Adds a row. `known`: its sensitivity, if certainty_of() has found it.
  void add(const Strategy& strategy, TrainingChange training, Seconds step, const Settable& set,
           const std::optional<measure::Sensitivity>& known = {}) {
    const auto sensitivity = known ? *known : uncertainties_.sensitivity(strategy);
    Alternative& row = list_.emplace_back();
    row.strategy = strategy;
    row.change = strategy.name;
    row.training = training;
    row.metrics.step_time = step;
    row.sensitivity = sensitivity;
    row.memory = measure::memory_of(scenario_, strategy);
    row.step = measure::interval_of(step, sensitivity);
    row.speedup = tuned_.baseline.metrics.step_time / step;
    row.gain = uncertainties_.ratio(row.speedup, {baseline_, tuned_.baseline.sensitivity},
                                    {strategy, sensitivity});
    row.set_with = set.how;
    row.written = set.written;
    if (row.written) row.written->step_time = step;
  }

  // Marks rows that are clearly faster than the baseline and the best that trains the same.
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
  const Tuned& tuned_;
  const Strategy& baseline_;
  const std::vector<measure::ReadScheme>& schemes_;
  const SettingWriter& settings_;
  Evaluator evaluator_;
  measure::Uncertainties uncertainties_;
  std::vector<Alternative> list_;
};

}  // namespace

void add_alternatives(const input::Document& document, const TuneOptions& options,
                      const dialect::Dialect* emit, const std::optional<Emitted>& said,
                      Tuning& tuning) {
  const SettingWriter settings(document, tuning, options.by_file, emit);
  WayFinder ways(tuning, settings);
  tuning.alternatives = Finder(tuning, options, settings).find(said, ways);
  auto& left_out = tuning.tuned.unmeasured;
  left_out.insert(left_out.end(), ways.unmeasured_strategies().begin(),
                  ways.unmeasured_strategies().end());
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
