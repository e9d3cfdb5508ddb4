#include "core/tune/tuner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <type_traits>

#include "core/error.h"
#include "core/input/parts.h"
#include "core/input/strategy_json.h"
#include "core/tune/rules.h"
#include "core/tune/thresholds.h"

namespace syncline {
namespace {

// Up to so many candidates are priced one and all: it takes a tenth of a second.
constexpr std::size_t kCheap = 1000;
// Candidates that another process is handed at once: the model prices one in 0.1 ms.
constexpr std::size_t kModelPiece = 32;
constexpr std::size_t kMostCurvePoints = 128;
// Step times closer than this are alike: sums of the same durations in another order.
constexpr double kRounding = 1e-9;

const Strategy& named(const Scenario& scenario, const std::string& name) {
  return *std::find_if(scenario.strategies.begin(), scenario.strategies.end(),
                       [&](const Strategy& strategy) { return strategy.name == name; });
}

// A candidate of the space.
struct Point {
  std::size_t arm = 0;
  FusionKind kind = FusionKind::kBase;
  Fusion fusion;
  Seconds bound = 0;
};

// Metrics as they travel between processes.
std::string bytes_of(const Metrics& metrics) {
  static_assert(std::is_trivially_copyable_v<Metrics>, "metrics travel as they lie in memory");
  std::string bytes(sizeof metrics, '\0');
  std::memcpy(bytes.data(), &metrics, sizeof metrics);
  return bytes;
}

std::vector<Metrics> metrics_of(const std::string& bytes) {
  if (bytes.size() % sizeof(Metrics) != 0) {
    throw MachineError("a candidate's figures from another process are cut short");
  }
  std::vector<Metrics> metrics(bytes.size() / sizeof(Metrics));
  if (!bytes.empty()) std::memcpy(metrics.data(), bytes.data(), bytes.size());
  return metrics;
}

bool shorter(Seconds a, Seconds b) { return a < b * (1 - kRounding); }

class Tuner {
 public:
  Tuner(const Scenario& scenario, const Search& search, const TuneOptions& options)
      : scenario_(scenario), search_(search), options_(options), book_(scenario.cluster) {}

  Tuned run() {
    tuned_.base = named(scenario_, search_.base);
    tuned_.baseline.strategy = named(scenario_, scenario_.baseline);
    lay_out();
    walk();
    rank();
    grade();
    draw_curve();
    if (options_.confirm) confirm();
    return std::move(tuned_);
  }

 private:
  Ranked priced(const Strategy& strategy, FusionKind kind) {
    Ranked ranked;
    ranked.strategy = strategy;
    ranked.kind = kind;
    ranked.metrics = price_strategy(scenario_, strategy, here(), book_).metrics;
    return ranked;
  }

  // This process's executor, made when it is first needed: processes that are forked off make their
  // own.
  Executor& here() {
    if (!executor_) {
      executor_ = options_.make_executor({scenario_.cluster, scenario_.simulation, scenario_.seed});
    }
    return *executor_;
  }

  // All of them, priced by options.parallel_map; the first ones without a gap where interrupted.
  std::vector<Metrics> spread(const std::vector<Strategy>& strategies,
                              const ExecutorFactory& factory, std::size_t piece) {
    std::unique_ptr<Executor> executor;  // of the process that prices
    const auto price = [&](std::size_t index) {
      if (!executor) {
        executor = factory({scenario_.cluster, scenario_.simulation, scenario_.seed});
      }
      std::string bytes;
      const std::size_t end = std::min(strategies.size(), (index + 1) * piece);
      for (std::size_t i = index * piece; i < end; ++i) {
        bytes += bytes_of(price_strategy(scenario_, strategies[i], *executor, book_).metrics);
      }
      return bytes;
    };
    JobHooks hooks;
    hooks.interrupted = options_.interrupted;
    hooks.progress = [&](std::size_t done, std::size_t) {
      options_.progress(std::min(strategies.size(), done * piece), strategies.size());
    };
    hooks.name = [&](std::size_t index) { return "'" + strategies[index * piece].name + "'"; };
    std::vector<Metrics> metrics;
    const std::size_t pieces = (strategies.size() + piece - 1) / piece;
    for (const auto& bytes : options_.parallel_map(pieces, price, hooks)) {
      const auto some = metrics_of(bytes);
      metrics.insert(metrics.end(), some.begin(), some.end());
    }
    return metrics;
  }

  Strategy strategy_of(const Point& point) const {
    Strategy strategy = fused(arms_[point.arm]->strategy(), point.fusion);
    strategy.name = point.kind == FusionKind::kBase ? tuned_.base.name + ", as it fuses"
                                                    : fusion_words(point.fusion);
    const std::string words = arm_words(strategy, tuned_.base);
    if (!words.empty()) strategy.name += ", " + words;
    return strategy;
  }

  // What the rules of an arm depend on: its candidates, and whether it can do with ticks.
  std::pair<std::vector<int>, bool> rules_key(const Arm& arm) const {
    Strategy ticked = arm.strategy();
    ticked.fusion.cycle = kMillisecond;
    return {arm.candidates(), misfit_of(ticked, scenario_.cluster).has_value()};
  }

  // Every arm with every fusion, each with its bound.
  void lay_out() {
    std::map<std::pair<std::vector<int>, bool>, std::vector<FusionChoice>> by_rule;
    for (auto& strategy : arm_strategies(search_, tuned_.base, scenario_.cluster)) {
      arms_.push_back(std::make_unique<Arm>(scenario_, std::move(strategy), book_));
      Arm& arm = *arms_.back();
      if (arms_.size() > 1) {
        const Arm& before = *arms_[arms_.size() - 2];
        Strategy alike = before.strategy();
        alike.streams = arm.strategy().streams;
        if (strategy_json(alike) == strategy_json(arm.strategy())) arm.share_costs(before);
      }
      const auto add = [&](const FusionChoice& choice) {
        points_.push_back({arms_.size() - 1, choice.kind, choice.fusion, arm.bound(choice.groups)});
      };
      const auto [rules, fresh] = by_rule.try_emplace(rules_key(arm));
      if (fresh) rules->second = rule_choices(search_, arm);
      for (const auto& choice : rules->second) add(choice);
      if (!search_.optimum) continue;
      if (const auto choice = explicit_choice(arm)) add(*choice);
    }
    tuned_.points = points_.size();
  }

  // Bounds hold for the closed form. The simulation may be a little faster than it, so there the
  // bounds only set the order.
  bool pruned() const {
    using Method = TuneOptions::Method;
    if (options_.executor != "model" || options_.method == Method::kExhaustive) return false;
    return options_.method == Method::kPruned || points_.size() > kCheap;
  }

  void walk() {
    tuned_.exhaustive = !pruned();
    std::vector<std::size_t> order(points_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const bool limited = options_.budget > 0 && options_.budget < points_.size();
    if (pruned() || limited) {
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return points_[a].bound < points_[b].bound;
      });
    }
    if (!pruned() && options_.parallel_map) {
      walk_together(order);
      return;
    }
    tuned_.baseline = priced(tuned_.baseline.strategy, FusionKind::kBase);
    std::size_t done = 0;
    for (const std::size_t index : order) {
      options_.progress(++done, order.size());
      const Point& point = points_[index];
      if (pruned() && !can_matter(point)) continue;
      if (options_.interrupted() ||
          (options_.budget > 0 && tuned_.evaluations >= options_.budget)) {
        tuned_.complete = false;
        tuned_.left_bound = point.bound;
        for (std::size_t i = done; i < order.size(); ++i) {
          tuned_.left_bound = std::min(tuned_.left_bound, points_[order[i]].bound);
        }
        return;
      }
      keep(point, priced(strategy_of(point), point.kind), index);
    }
  }

  void walk_together(std::vector<std::size_t> order) {
    if (options_.budget > 0 && options_.budget < order.size()) {
      tuned_.complete = false;
      tuned_.left_bound = points_[order[options_.budget]].bound;
      order.resize(options_.budget);
    }
    // The baseline goes along: nothing is simulated in this process before others are forked off.
    std::vector<Strategy> strategies{tuned_.baseline.strategy};
    for (const std::size_t index : order) strategies.push_back(strategy_of(points_[index]));
    const std::size_t piece = options_.executor == "model" ? kModelPiece : 1;
    const auto metrics = spread(strategies, options_.make_executor, piece);
    if (metrics.empty()) {
      tuned_.baseline = priced(tuned_.baseline.strategy, FusionKind::kBase);
    } else {
      tuned_.baseline.metrics = metrics.front();
    }
    const std::size_t done = std::max<std::size_t>(1, metrics.size()) - 1;
    for (std::size_t i = 0; i < done; ++i) {
      const Point& point = points_[order[i]];
      keep(point, {std::move(strategies[i + 1]), point.kind, metrics[i + 1], {}}, order[i]);
    }
    if (done == order.size()) return;
    tuned_.left_bound = tuned_.complete ? points_[order[done]].bound : tuned_.left_bound;
    tuned_.complete = false;
    for (std::size_t i = done; i < order.size(); ++i) {
      tuned_.left_bound = std::min(tuned_.left_bound, points_[order[i]].bound);
    }
  }

  // How many of the best groups are found for certain: kinds of one arm may come to the same plan,
  // of which only one is told.
  std::size_t few() const {
    constexpr std::size_t kKinds = 7;
    return kKinds * options_.top;
  }

  // Kinds are told apart by whether they change the training: the best of either is told.
  std::pair<FusionKind, bool> kind_of(const Point& point) const {
    return {point.kind, changes_training(arms_[point.arm]->strategy())};
  }

  // A candidate matters if it may beat the best of its arm and kind, and then either come under the
  // best few or be the best of its kind in any arm.
  bool can_matter(const Point& point) const {
    const auto group = groups_.find({point.arm, point.kind});
    if (group != groups_.end() && !shorter(point.bound, group->second.step)) return false;
    if (groups_.size() < few()) return true;
    const auto kind = best_of_kind_.find(kind_of(point));
    if (kind == best_of_kind_.end() || shorter(point.bound, kind->second)) return true;
    std::vector<Seconds> steps;
    for (const auto& [key, best] : groups_) steps.push_back(best.step);
    const auto last = steps.begin() + static_cast<std::ptrdiff_t>(few()) - 1;
    std::nth_element(steps.begin(), last, steps.end());
    return shorter(point.bound, *last);
  }

  void keep(const Point& point, Ranked ranked, std::size_t index) {
    ++tuned_.evaluations;
    const Seconds step = ranked.metrics.step_time;
    const auto kind = best_of_kind_.try_emplace(kind_of(point), step).first;
    kind->second = std::min(kind->second, step);
    auto [group, fresh] = groups_.try_emplace({point.arm, point.kind});
    Best& best = group->second;
    const bool alike = !fresh && !shorter(step, best.step) && !shorter(best.step, step);
    if (!fresh && (alike ? index > best.index : step > best.step)) return;
    best = {step, index, std::move(ranked)};
  }

  void rank() {
    std::vector<Best*> bests;
    for (auto& [key, best] : groups_) bests.push_back(&best);
    // By step time; of those alike, the one that was written first.
    std::stable_sort(bests.begin(), bests.end(), [](const Best* a, const Best* b) {
      return rounded(a->step) != rounded(b->step) ? rounded(a->step) < rounded(b->step)
                                                  : a->index < b->index;
    });
    for (const Best* best : bests) {
      tuned_.best_of_kind.try_emplace(best->ranked.kind, best->ranked);
      auto& best_so =
          changes_training(best->ranked.strategy) ? tuned_.best_changed : tuned_.best_as_before;
      if (!best_so) best_so = best->ranked;
      if (tuned_.ranking.size() < options_.top && !told(best->ranked)) {
        tuned_.ranking.push_back(best->ranked);
      }
    }
    if (tuned_.ranking.empty()) tuned_.ranking.push_back(tuned_.baseline);
    for (const auto& [kind, ranked] : tuned_.best_of_kind) {
      const bool by_size = kind == FusionKind::kSizeAfter || kind == FusionKind::kSizeBefore ||
                           kind == FusionKind::kTicks;
      if (kind == FusionKind::kExplicit) tuned_.best_explicit = ranked;
      auto& threshold = tuned_.best_threshold;
      if (by_size &&
          (!threshold || shorter(ranked.metrics.step_time, threshold->metrics.step_time))) {
        threshold = ranked;
      }
    }
  }

  // Whether the ranking has the same buckets with the same knobs, under another rule.
  bool told(const Ranked& ranked) const {
    return std::any_of(tuned_.ranking.begin(), tuned_.ranking.end(), [&](const Ranked& other) {
      return rounded(other.metrics.step_time) == rounded(ranked.metrics.step_time) &&
             other.metrics.collectives == ranked.metrics.collectives &&
             arm_words(other.strategy, ranked.strategy).empty();
    });
  }

  // Ten significant digits.
  static double rounded(Seconds seconds) {
    if (seconds <= 0) return 0;
    const double unit = std::pow(10.0, std::floor(std::log10(seconds)) - 9);
    return std::round(seconds / unit) * unit;
  }

  void grade() {
    Strategy one = tuned_.winner().strategy;
    if (one.overlap) one.streams = 1;
    const Arm arm(scenario_, one, book_);
    const FusionPlan plan = arm.optimum();
    tuned_.optimum_exact = arm.exact();
    if (!plan.ends.empty()) {
      Fusion fusion = by_ends(plan.ends);
      fusion.align = one.fusion.align;
      one = fused(one, fusion);
    }
    one.name = fusion_words(one.fusion);
    tuned_.optimum_strategy = one;
    tuned_.one_stream_optimum = priced(one, FusionKind::kExplicit).metrics.step_time;
    tuned_.optimum = std::min(tuned_.one_stream_optimum, tuned_.winner().metrics.step_time);
    // Sums of the same durations in another order may leave the bound an ulp above what reaches it.
    tuned_.lower_bound = tuned_.winner().metrics.lower_bound;
    if (tuned_.lower_bound < tuned_.optimum * (1 + kRounding)) {
      tuned_.lower_bound = std::min(tuned_.lower_bound, tuned_.optimum);
    }
  }

  // The rule by size with the winner's knobs: at each size that changes the partition, thinned out
  // evenly where there are very many.
  void draw_curve() {
    const auto model = make_model_executor({scenario_.cluster, scenario_.simulation, 1});
    const Arm arm(scenario_, tuned_.winner().strategy, book_);
    // Where the winner keeps to ticks, so do its neighbours, which then close before the size.
    const Fusion& best = arm.strategy().fusion;
    Fusion form = by_size(0, best.cycle > 0 ? Fusion::Close::kBefore : Fusion::Close::kAfter);
    form.align = best.align;
    const auto thresholds = size_thresholds(arm.tensors(), arm.candidates(), form);
    const std::size_t count = std::min(thresholds.size(), kMostCurvePoints);
    for (std::size_t i = 0; i < count; ++i) {
      if (options_.interrupted()) return;
      const std::size_t at = count < 2 ? 0 : i * (thresholds.size() - 1) / (count - 1);
      Fusion fusion = form;
      fusion.size = thresholds[at].value;
      fusion.cycle = best.cycle;
      const Strategy strategy = fused(arm.strategy(), fusion);
      const Metrics metrics = price_strategy(scenario_, strategy, *model, book_).metrics;
      tuned_.curve.push_back({thresholds[at].value, metrics.step_time});
    }
  }

  void confirm() {
    if (search_.confirm == 0) return;
    std::vector<Ranked*> wanted{&tuned_.baseline};
    for (std::size_t i = 0; i < std::min(search_.confirm, tuned_.ranking.size()); ++i) {
      wanted.push_back(&tuned_.ranking[i]);
    }
    if (options_.parallel_map) {
      std::vector<Strategy> strategies;
      for (const Ranked* ranked : wanted) strategies.push_back(ranked->strategy);
      const auto metrics = spread(strategies, options_.confirm, 1);
      for (std::size_t i = 0; i < metrics.size(); ++i) wanted[i]->confirmed = metrics[i].step_time;
      return;
    }
    const auto executor =
        options_.confirm({scenario_.cluster, scenario_.simulation, scenario_.seed});
    for (Ranked* ranked : wanted) {
      if (options_.interrupted()) return;
      ranked->confirmed =
          price_strategy(scenario_, ranked->strategy, *executor, book_).metrics.step_time;
    }
  }

  struct Best {
    Seconds step = 0;
    std::size_t index = 0;
    Ranked ranked;
  };

  const Scenario& scenario_;
  const Search& search_;
  const TuneOptions& options_;
  PriceBook book_;
  std::unique_ptr<Executor> executor_;
  Tuned tuned_;
  std::vector<std::unique_ptr<Arm>> arms_;
  std::vector<Point> points_;
  std::map<std::pair<std::size_t, FusionKind>, Best> groups_;
  std::map<std::pair<FusionKind, bool>, Seconds> best_of_kind_;
};

}  // namespace

double percent_above(Seconds found, Seconds best) { return 100 * (found / best - 1); }

Tuned tune(const Scenario& scenario, const Search& search, const TuneOptions& options) {
  return Tuner(scenario, search, options).run();
}

}  // namespace syncline
