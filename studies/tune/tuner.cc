// Candidates are evaluated by the ordinary planner and executor. Small spaces are walked in full;
// large ones in the order of each candidate's bound (studies/tune/configuration.h), where one that
// cannot beat the best of its own kind, or cannot come under the best few, is left out. Both ways
// find the same best ones. Where a search is stopped early (budget, interruption) the result says
// so.
#include "studies/tune/tuner.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "core/metrics/bound.h"
#include "formats/text/digits.h"
#include "studies/rows/memory.h"
#include "studies/tune/evaluator.h"
#include "studies/tune/schemes.h"
#include "studies/tune/thresholds.h"

namespace syncline::tune {
namespace {

// Up to so many candidates are evaluated one and all: it takes a tenth of a second.
constexpr std::size_t kCheap = 1000;
// Candidates that another process is handed at once where an executor evaluates one in 0.1 ms.
constexpr std::size_t kCheapPiece = 32;
constexpr std::size_t kMostCurvePoints = 128;
constexpr std::size_t kKinds = 7;  // of fusion
// Candidates within this of the best are as good as it: no measurement tells them apart.
constexpr double kEqual = 1e-3;
// Step times closer than this are alike: sums of the same durations in another order.
constexpr double kRounding = 1e-9;

bool shorter(Seconds a, Seconds b) { return a < b * (1 - kRounding); }

class Tuner {
 public:
  Tuner(const Scenario& scenario, const Search& search, const TuneOptions& options)
      : scenario_(scenario),
        search_(search),
        options_(options),
        evaluator_(scenario, options.make_executor),
        space_(scenario, search, *find_strategy(scenario, search.base), evaluator_.cache()),
        seen_(space_.points().size(), false),
        few_(kKinds * options.top),
        cramped_(cramped()) {}

  Tuned run() {
    tuned_.base = *find_strategy(scenario_, search_.base);
    tuned_.baseline.strategy = *find_strategy(scenario_, scenario_.baseline);
    tuned_.points = points().size();
    tuned_.unmeasured = space_.unmeasured();
    walk();
    rank();
    fill();
    prefer_framework();
    prefer_scheme();
    grade();
    draw_curve();
    if (options_.confirm) confirm();
    return std::move(tuned_);
  }

 private:
  using Point = FusionChoice;

  // Of one configuration and kind.
  struct Best {
    Seconds step = 0;
    std::size_t index = 0;
    Ranked ranked;
    bool fits = true;  // into the device's memory
  };

  const std::vector<Point>& points() const { return space_.points(); }

  Ranked evaluated(const Strategy& strategy, FusionKind kind) {
    return {{evaluator_.metrics_of(strategy)}, strategy, kind};
  }

  // All of them, evaluated elsewhere; the first ones without a gap where interrupted.
  std::vector<measure::Metrics> evaluate_all(const std::vector<Strategy>& strategies,
                                             Evaluator& evaluator, std::size_t piece) {
    run::JobHooks hooks;
    hooks.interrupted = options_.interrupted;
    hooks.progress = options_.progress;
    hooks.name = [&](std::size_t i) { return "'" + strategies[i].name + "'"; };
    const auto bytes_of = [&](std::size_t i) {
      return measure::metrics_bytes(evaluator.metrics_of(strategies[i]));
    };
    return measure::metrics_from_bytes(
        in_pieces(strategies.size(), piece, options_.parallel_map, bytes_of, hooks));
  }

  // Candidates evaluated at most.
  std::size_t budget() const {
    const std::size_t gradients = std::max<std::size_t>(1, scenario_.workload.tensors.size());
    std::size_t most = std::numeric_limits<std::size_t>::max();
    if (options_.budget > 0) most = options_.budget;
    if (options_.work > 0)
      most = std::min(most, std::max<std::size_t>(1, options_.work / gradients));
    return most;
  }

  // Bounds hold for the closed form. The simulation may be a little faster than it, so there the
  // bounds only set the order.
  bool pruned() {
    using Method = TuneOptions::Method;
    if (!evaluator_.traits().closed_form || options_.method == Method::kExhaustive) return false;
    return options_.method == Method::kPruned || points().size() > kCheap;
  }

  // The order in which candidates are evaluated: as they were written where all of them are, by
  // their bounds where some are left out.
  std::vector<std::size_t> walking_order() {
    std::vector<std::size_t> order(points().size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (pruned() || budget() < points().size()) {
      // The scenario's own strategies come first: their bounds are left at nothing.
      std::ranges::stable_sort(order, {}, [&](std::size_t i) { return points()[i].bound; });
    }
    return order;
  }

  // What none of the candidates from place `first` of the order on goes below.
  Seconds least_bound(const std::vector<std::size_t>& order, std::size_t first) const {
    const auto left = std::span(order).subspan(first);
    const auto bound_of = [&](std::size_t i) { return points()[i].bound; };
    return bound_of(std::ranges::min(left, {}, bound_of));
  }

  // How far a walk is: by its candidates, or by its budget where that ends it earlier.
  void tell_progress(std::size_t seen, std::size_t candidates) const {
    const std::size_t most = budget();
    const double of_all = static_cast<double>(seen) / static_cast<double>(candidates);
    const double of_budget = static_cast<double>(tuned_.evaluations) / static_cast<double>(most);
    const bool ends_earlier = of_budget > of_all;
    options_.progress(ends_earlier ? tuned_.evaluations : seen, ends_earlier ? most : candidates);
  }

  // Costs candidates one after the other, in a pruned walk those only that may matter by what was
  // found before.
  void walk() {
    tuned_.exhaustive = !pruned();
    const auto order = walking_order();
    if (!pruned() && options_.parallel_map) {
      walk_together(order);
      return;
    }
    tuned_.baseline = evaluated(tuned_.baseline.strategy, FusionKind::kBase);
    for (std::size_t i = 0; i < order.size(); ++i) {
      tell_progress(i + 1, order.size());
      const Point& point = points()[order[i]];
      if (pruned() && (seen_[order[i]] || !can_matter(point))) continue;
      if (options_.interrupted() || tuned_.evaluations >= budget()) {
        tuned_.complete = false;
        tuned_.left_bound = least_bound(order, i);
        return;
      }
      keep(point, evaluated(space_.strategy_of(point), point.kind), order[i]);
      seen_[order[i]] = true;
    }
  }

  // Configurations and kinds may come to the same figures more often than `few` predicts: then more
  // of them have to be certain until the ranking is as long as was asked for, or there are no more.
  void fill() {
    while (pruned() && tuned_.complete && tuned_.ranking.size() < options_.top &&
           groups_.size() >= few_) {
      few_ *= 2;
      walk();
      rank();
    }
  }

  // Puts what the framework has in place of the best, ahead of whatever takes longer.
  void prefer_framework() {
    if (!options_.in_framework) return;
    const auto said = options_.in_framework(tuned_.winner().strategy);
    if (!said) return;
    const std::vector<Ranked> found = std::move(tuned_.ranking);
    tuned_.ranking = {evaluated(*said, FusionKind::kBase)};
    if (found.front().metrics.step_time < tuned_.winner().metrics.step_time) {
      tuned_.outside = found.front();
    }
    for (const Ranked& ranked : found) add_slower(ranked);
    auto& best_so = input::changes_training(*said) ? tuned_.best_changed : tuned_.best_as_before;
    best_so = tuned_.winner();
  }

  // Puts another scheme ahead of what does not fit, or takes clearly longer.
  void prefer_scheme() {
    std::vector<Ranked> schemes;
    for (const Strategy& scheme : options_.schemes) {
      schemes.push_back(evaluated(scheme, FusionKind::kBase));
    }
    const auto step_of = [](const Ranked& ranked) { return ranked.metrics.step_time; };
    const auto best = std::ranges::min_element(schemes, {}, step_of);
    if (best == schemes.end()) return;
    const bool needed = !fits(tuned_.winner().strategy);
    // One of the job's own framework is a key or two away.
    const std::string& dialect = best->strategy.dialect;
    const bool near =
        dialect == tuned_.baseline.strategy.dialect || dialect == tuned_.winner().strategy.dialect;
    const double least = near ? kEqual : kSchemeGain;
    if (!needed && step_of(*best) > step_of(tuned_.winner()) * (1 - least)) return;
    std::vector<Ranked> found = std::exchange(tuned_.ranking, {*best});
    for (const Ranked& ranked : found) add_slower(ranked);
    tuned_.best_as_before = tuned_.winner();
  }

  // Costs all of them at once, as far as the budget goes; an interruption leaves out the last.
  void walk_together(const std::vector<std::size_t>& order) {
    const std::size_t wanted = std::min(budget(), order.size());
    // The baseline goes along: nothing is simulated in this process before others are forked off.
    std::vector<Strategy> strategies{tuned_.baseline.strategy};
    for (std::size_t i = 0; i < wanted; ++i) {
      strategies.push_back(space_.strategy_of(points()[order[i]]));
    }
    const std::size_t piece = evaluator_.traits().cheap ? kCheapPiece : 1;
    const auto metrics = evaluate_all(strategies, evaluator_, piece);
    if (metrics.empty()) {
      tuned_.baseline = evaluated(tuned_.baseline.strategy, FusionKind::kBase);
    } else {
      tuned_.baseline.metrics = metrics.front();
    }
    const std::size_t done = std::max<std::size_t>(1, metrics.size()) - 1;
    for (std::size_t i = 0; i < done; ++i) {
      const Point& point = points()[order[i]];
      keep(point, {{metrics[i + 1]}, std::move(strategies[i + 1]), point.kind}, order[i]);
    }
    tuned_.complete = done == order.size();
    if (!tuned_.complete) tuned_.left_bound = least_bound(order, done);
  }

  // Kinds are kept apart by whether they change the training: the best of either is reported.
  std::pair<FusionKind, bool> kind_of(const Point& point) const {
    return {point.kind, input::changes_training(space_.configuration_of(point))};
  }

  // Whether some candidates fit into the device's memory and others may not: the fastest may be
  // among those.
  bool cramped() const {
    const auto has_room = [&](const Strategy& strategy) { return fits(strategy); };
    const auto& own = scenario_.strategies;
    const bool some = !search_.exchanges.empty() || std::ranges::any_of(own, has_room);
    return some && !std::ranges::all_of(own, has_room);
  }
  bool fits(const Strategy& strategy) const {
    return measure::memory_of(scenario_, strategy).fits();
  }

  // A candidate matters if it may beat the best of its configuration and kind, and then either come
  // under the best few or be the best of its kind in any configuration; or if it fits where others
  // do not.
  bool can_matter(const Point& point) const {
    if (cramped_ && fits(space_.strategy_of(point))) return true;
    const auto group = groups_.find({point.configuration, point.kind});
    if (group != groups_.end() && !shorter(point.bound, group->second.step)) return false;
    if (groups_.size() < few_) return true;
    const auto kind = best_of_kind_.find(kind_of(point));
    if (kind == best_of_kind_.end() || shorter(point.bound, kind->second)) return true;
    std::vector<Seconds> steps;
    for (const auto& [key, best] : groups_) steps.push_back(best.step);
    const auto last = steps.begin() + static_cast<std::ptrdiff_t>(few_) - 1;
    std::nth_element(steps.begin(), last, steps.end());
    return shorter(point.bound, *last);
  }

  // Keeps the best of each configuration and kind; of those alike, the one that was written first,
  // whatever the order of the walk.
  void keep(const Point& point, Ranked ranked, std::size_t index) {
    ++tuned_.evaluations;
    const Seconds step = ranked.metrics.step_time;
    const bool has_room = !cramped_ || fits(ranked.strategy);
    const auto kind = best_of_kind_.try_emplace(kind_of(point), step).first;
    kind->second = std::min(kind->second, step);
    auto [group, fresh] = groups_.try_emplace({point.configuration, point.kind});
    Best& best = group->second;
    const bool alike = !fresh && !shorter(step, best.step) && !shorter(best.step, step);
    const bool better = alike ? index < best.index : step < best.step;
    if (!fresh && (has_room != best.fits ? !has_room : !better)) return;
    best = {step, index, std::move(ranked), has_room};
  }

  void rank() {
    tuned_.ranking.clear();
    tuned_.best_of_kind.clear();
    tuned_.best_explicit = tuned_.best_threshold = std::nullopt;
    tuned_.best_as_before = tuned_.best_changed = std::nullopt;
    // What fits first, then by step time; of those alike the simplest, and the one that was written
    // first.
    std::vector<Best*> bests;
    for (auto& [key, best] : groups_) bests.push_back(&best);
    std::map<const Best*, int> effort;
    for (const Best* best : bests) effort[best] = effort_of(*best);
    std::ranges::stable_sort(bests, {}, [&](const Best* best) {
      return std::tuple(!best->fits, rounded(best->step), effort.at(best), best->index);
    });
    if (!bests.empty()) tuned_.fastest = bests.front()->step;
    tuned_.ranking.push_back(bests.empty() ? tuned_.baseline : recommended(bests));
    // The best of each kind and of either way to train, and what is slower than the best.
    std::size_t place = 0;
    for (const Best* best : bests) {
      tuned_.best_of_kind.try_emplace(best->ranked.kind, best->ranked);
      auto& best_so = input::changes_training(best->ranked.strategy) ? tuned_.best_changed
                                                                     : tuned_.best_as_before;
      if (!best_so) best_so = best->ranked;
      const bool certain = place++ < few_ || !pruned();
      if (certain && tuned_.ranking.size() < options_.top) add_slower(rounder(*best));
    }
    // Kinds that a framework's threshold can say, against explicit buckets.
    for (const Best* best : bests) {
      const FusionKind kind = best->ranked.kind;
      const bool by_size = kind == FusionKind::kSizeAfter || kind == FusionKind::kSizeBefore ||
                           kind == FusionKind::kTicks;
      if (kind == FusionKind::kExplicit && !tuned_.best_explicit) {
        tuned_.best_explicit = best->ranked;
      }
      if (by_size && !tuned_.best_threshold) tuned_.best_threshold = rounder(*best);
    }
  }

  // Among those that no measurement could tell apart the simplest, of those alike the one with the
  // fewest collectives.
  const Best& simplest(const std::vector<Best*>& bests) const {
    const Seconds limit = bests.front()->step * (1 + kEqual);
    const auto end = std::find_if(bests.begin(), bests.end(), [&](const Best* best) {
      return best->step > limit || best->fits != bests.front()->fits;
    });
    return **std::ranges::min_element(bests.begin(), end, {}, [&](const Best* best) {
      return std::pair(effort_of(*best), best->ranked.metrics.collectives);
    });
  }

  // The simplest of a round size; a row of the scenario that is no slower than that stays.
  Ranked recommended(const std::vector<Best*>& bests) {
    const Best& simple = simplest(bests);
    const Ranked* own = nullptr;
    Ranked round = rounder(simple);
    int least = effort_of(simple);
    for (const Best* best : bests) {
      const bool row = points()[best->index].own_row && best->fits == simple.fits;
      if (!row || best->step > round.metrics.step_time * (1 + kEqual)) continue;
      if (effort_of(*best) >= least) continue;
      least = effort_of(*best);
      own = &best->ranked;
    }
    return own != nullptr ? *own : round;
  }

  // Behind the best, by step time. What is as fast or faster takes more to set up, or is no round
  // size, and no measurement could tell.
  void add_slower(Ranked ranked) {
    if (!shorter(tuned_.winner().metrics.step_time, ranked.metrics.step_time)) return;
    if (ranked_already(ranked)) return;
    const auto behind =
        std::find_if(tuned_.ranking.begin() + 1, tuned_.ranking.end(), [&](const Ranked& other) {
          return shorter(ranked.metrics.step_time, other.metrics.step_time);
        });
    tuned_.ranking.insert(behind, std::move(ranked));
  }

  // The same with a size that a person would write, where that costs little.
  Ranked rounder(const Best& best) {
    const Ranked& found = best.ranked;
    const bool by_size =
        found.strategy.fusion.rule == Fusion::Rule::kSize &&
        (found.kind == FusionKind::kSizeAfter || found.kind == FusionKind::kSizeBefore);
    if (!by_size || points()[best.index].own_row || !evaluator_.traits().cheap ||
        !search_.breakpoints) {
      return found;
    }
    const auto [known, fresh] = round_.try_emplace({best.index, found.strategy.fusion.size}, found);
    if (!fresh) return known->second;
    for (const Bytes size : rounder_sizes(found.strategy.fusion.size)) {
      Fusion fusion = found.strategy.fusion;
      fusion.size = size;
      Ranked round = evaluated(space_.named(fused(found.strategy, fusion), found.kind), found.kind);
      if (round.metrics.step_time > best.step * (1 + kRoundness)) continue;
      known->second = std::move(round);
      break;
    }
    return known->second;
  }

  // What it takes to set a candidate up: nothing for what the user has, then one knob after the
  // other, buckets by hand last.
  int effort_of(const Best& best) const {
    const Strategy& strategy = best.ranked.strategy;
    if (points()[best.index].own_row) return strategy.name == scenario_.baseline ? 0 : 1;
    const std::string words = input::configuration_words(strategy, tuned_.base);
    const auto knobs = words.empty() ? 0 : 1 + std::count(words.begin(), words.end(), ',');
    const bool by_hand = best.ranked.kind == FusionKind::kExplicit;
    return 2 + static_cast<int>(knobs) * 10 + (by_hand ? 5 : static_cast<int>(best.ranked.kind));
  }

  // Whether the ranking has a candidate of the same figures: its knobs are others, or its rule, but
  // they change nothing here (streams that are never busy together).
  bool ranked_already(const Ranked& ranked) const {
    const auto alike = [&](Seconds measure::Metrics::*figure, const Ranked& other) {
      return rounded(other.metrics.*figure) == rounded(ranked.metrics.*figure);
    };
    using measure::Metrics;
    return std::ranges::any_of(tuned_.ranking, [&](const Ranked& other) {
      return alike(&Metrics::step_time, other) && alike(&Metrics::communication, other) &&
             alike(&Metrics::exposed, other) &&
             other.metrics.collectives == ranked.metrics.collectives &&
             other.metrics.bytes_on_wire == ranked.metrics.bytes_on_wire;
    });
  }

  static double rounded(Seconds seconds) { return significant(seconds, 10); }

  // Of what is shown alone.
  void bound(Ranked& ranked) {
    ranked.metrics.lower_bound = measure::lower_bound_of(
        scenario_, ranked.strategy, ranked.metrics.step_time, evaluator_.cache());
  }

  // How good the winner is: against the best contiguous fusion with its knobs on one stream, which
  // the dynamic programme finds, and against the bound that no fusion and no stream goes below.
  void grade() {
    Strategy one = tuned_.winner().strategy;
    if (one.overlap) one.streams = 1;
    const Configuration configuration(scenario_, one, evaluator_.cache());
    const FusionPlan plan = configuration.optimum();
    tuned_.optimum_exact = configuration.exact();
    if (!plan.ends.empty()) {
      Fusion fusion = by_ends(plan.ends);
      fusion.align = one.fusion.align;
      one = fused(one, fusion);
    }
    one.name = fusion_words(one.fusion);
    tuned_.optimum_strategy = one;
    tuned_.one_stream_optimum = evaluated(one, FusionKind::kExplicit).metrics.step_time;
    tuned_.optimum = std::min({tuned_.one_stream_optimum, tuned_.winner().metrics.step_time,
                               tuned_.fastest > 0 ? tuned_.fastest : tuned_.one_stream_optimum});
    for (Ranked& ranked : tuned_.ranking) bound(ranked);
    bound(tuned_.baseline);
    // Sums of the same durations in another order may leave the bound an ulp above what reaches it.
    tuned_.lower_bound = tuned_.winner().metrics.lower_bound;
    if (tuned_.lower_bound < tuned_.optimum * (1 + kRounding)) {
      tuned_.lower_bound = std::min(tuned_.lower_bound, tuned_.optimum);
    }
  }

  // The rule by size with the winner's knobs: at each size that changes the partition, thinned out
  // evenly where there are very many.
  void draw_curve() {
    Evaluator model(scenario_);
    const Configuration configuration(scenario_, tuned_.winner().strategy, evaluator_.cache());
    // Its neighbours close as it does, those of ticks before the size.
    const Fusion& best = configuration.strategy().fusion;
    const bool by_size = best.rule == Fusion::Rule::kSize && best.size > 0 && !best.by_layer;
    const Fusion::Close close = best.cycle > 0 ? Fusion::Close::kBefore
                                : by_size      ? best.close
                                               : Fusion::Close::kAfter;
    Fusion form = tune::by_size(0, close, by_size ? best.first_size : 0);
    form.align = best.align;
    tuned_.curve_strategy = [form, cycle = best.cycle,
                             knobs = configuration.strategy()](Bytes size) {
      Fusion fusion = form;
      fusion.size = size;
      fusion.cycle = cycle;
      return fused(knobs, fusion);
    };
    const auto thresholds =
        size_thresholds(configuration.tensors(), configuration.candidates(), form);
    std::set<Bytes> sizes;
    for (const std::size_t at : spread_over(thresholds.size(), kMostCurvePoints)) {
      sizes.insert(thresholds[at]);
    }
    if (by_size && sizes.size() > 1) sizes.insert(best.size);
    for (const Bytes size : sizes) {
      if (options_.interrupted()) return;
      tuned_.curve.push_back({size, model.step_time(tuned_.curve_strategy(size))});
    }
  }

  // What a simulation has to follow, about: with one stream of communication the busiest link's
  // messages stand for all, with several every rank's.
  double confirming_work(const Ranked& ranked) const {
    const bool together = ranked.strategy.overlap && ranked.strategy.streams > 1;
    return ranked.metrics.collectives * (together ? scenario_.cluster.ranks() : 1);
  }

  // The best few and the baseline, in this order as far as the work goes.
  std::vector<Ranked*> to_confirm() {
    std::vector<Ranked*> wanted;
    for (std::size_t i = 0; i < std::min(search_.confirm, tuned_.ranking.size()); ++i) {
      wanted.push_back(&tuned_.ranking[i]);
    }
    wanted.push_back(&tuned_.baseline);
    if (options_.confirm_work <= 0) return wanted;
    double work = 0;
    const auto first_left = std::ranges::find_if(wanted, [&](const Ranked* ranked) {
      return (work += confirming_work(*ranked)) > options_.confirm_work;
    });
    tuned_.confirmed_all = first_left == wanted.end();
    wanted.erase(first_left, wanted.end());
    return wanted;
  }

  // These once more, by the confirming executor.
  void confirm() {
    if (search_.confirm == 0) return;
    const std::vector<Ranked*> wanted = to_confirm();
    Evaluator evaluator(scenario_, options_.confirm);
    if (options_.parallel_map) {
      std::vector<Strategy> strategies;
      for (const Ranked* ranked : wanted) strategies.push_back(ranked->strategy);
      const auto metrics = evaluate_all(strategies, evaluator, 1);
      for (std::size_t i = 0; i < metrics.size(); ++i) wanted[i]->confirmed = metrics[i].step_time;
      return;
    }
    for (Ranked* ranked : wanted) {
      if (options_.interrupted()) return;
      ranked->confirmed = evaluator.step_time(ranked->strategy);
    }
  }

  const Scenario& scenario_;
  const Search& search_;
  const TuneOptions& options_;
  Evaluator evaluator_;
  CandidateSpace space_;
  Tuned tuned_;
  std::vector<bool> seen_;  // points that were evaluated in a pruned walk
  // How many of the best groups are found for certain: configurations and kinds may come to the
  // same figures, of which only one is reported.
  std::size_t few_;
  bool cramped_;  // some candidates fit into the device's memory, others may not
  std::map<std::pair<std::size_t, FusionKind>, Best> groups_;
  std::map<std::pair<FusionKind, bool>, Seconds> best_of_kind_;
  std::map<std::pair<std::size_t, Bytes>, Ranked> round_;  // by candidate and size
};

}  // namespace

double percent_above(Seconds found, Seconds best) { return 100 * (found / best - 1); }

Tuned tune(const Scenario& scenario, const Search& search, const TuneOptions& options) {
  return Tuner(scenario, search, options).run();
}

}  // namespace syncline::tune
