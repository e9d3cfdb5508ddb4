#include "studies/tune/tuner.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/metrics/bound.h"
#include "formats/input/knobs.h"
#include "studies/tune/candidate_walk.h"
#include "studies/tune/ranking.h"
#include "studies/tune/schemes.h"
#include "studies/tune/thresholds.h"

namespace syncline::tune {
namespace {

constexpr std::size_t kMaxCurvePoints = 128;
// Sums of the same durations in another order differ by at most this.
constexpr double kRounding = 1e-9;

class Tuner {
 public:
  Tuner(const Scenario& scenario, const Search& search, const TuneOptions& options)
      : scenario_(scenario),
        search_(search),
        options_(options),
        evaluator_(scenario, options.make_executor),
        tuned_(begin(scenario, search)),
        walk_(scenario, search, options, evaluator_, tuned_),
        ranking_(scenario, search, options, evaluator_, walk_, tuned_) {}

  Tuned run() {
    walk_.walk();
    ranking_.rank();
    fill();
    prefer_framework();
    prefer_scheme();
    grade();
    draw_curve();
    if (options_.confirm) confirm();
    return std::move(tuned_);
  }

 private:
  static Tuned begin(const Scenario& scenario, const Search& search) {
    Tuned tuned;
    tuned.base = *find_strategy(scenario, search.base);
    tuned.baseline.strategy = *find_strategy(scenario, scenario.baseline);
    return tuned;
  }

  Ranked evaluated(const Strategy& strategy, FusionKind kind) {
    return evaluate_candidate(strategy, kind, evaluator_);
  }

  // Searches further until the ranking has `top` rows or no candidate is left. The first walk may
  // give fewer, because groups with the same figures make one row.
  void fill() {
    while (walk_.is_pruned() && tuned_.complete && tuned_.ranking.size() < options_.top &&
           walk_.groups().size() >= walk_.certain()) {
      walk_.widen();
      ranking_.rank();
    }
  }

  // Puts the framework's strategy in place of the best, ahead of all that take longer.
  void prefer_framework() {
    if (!options_.in_framework) return;
    const auto framework_strategy = options_.in_framework(tuned_.winner().strategy);
    if (!framework_strategy) return;
    const std::vector<Ranked> found = std::move(tuned_.ranking);
    tuned_.in_framework = true;
    tuned_.ranking = {evaluated(*framework_strategy, FusionKind::kBase)};
    const bool shorter = found.front().metrics.step_time < tuned_.winner().metrics.step_time;
    if (shorter && walk_.fits(found.front().strategy)) tuned_.outside = found.front();
    for (const Ranked& ranked : found) add_slower(ranked, tuned_);
    auto& best_of_kind =
        input::changes_training(*framework_strategy) ? tuned_.best_changed : tuned_.best_as_before;
    best_of_kind = tuned_.winner();
  }

  // Puts another scheme ahead of a winner that does not fit, or takes clearly longer.
  void prefer_scheme() {
    std::vector<Ranked> schemes;
    for (const Strategy& scheme : options_.schemes) {
      schemes.push_back(evaluated(scheme, FusionKind::kBase));
    }
    const auto step_of = [](const Ranked& ranked) { return ranked.metrics.step_time; };
    const auto best = std::ranges::min_element(schemes, {}, step_of);
    if (best == schemes.end()) return;
    const bool needed = !walk_.fits(tuned_.winner().strategy);
    // One of the job's own framework is a key or two away.
    const std::string& dialect = best->strategy.dialect;
    const bool near =
        dialect == tuned_.baseline.strategy.dialect || dialect == tuned_.winner().strategy.dialect;
    const double least = near ? kEqual : kSchemeGain;
    if (!needed && step_of(*best) > step_of(tuned_.winner()) * (1 - least)) return;
    std::vector<Ranked> found = std::exchange(tuned_.ranking, {*best});
    for (const Ranked& ranked : found) add_slower(ranked, tuned_);
    tuned_.best_as_before = tuned_.winner();
    if (tuned_.outside && step_of(*tuned_.outside) >= step_of(*best)) tuned_.outside.reset();
  }

  // Bounds a row that is shown.
  void bound(Ranked& ranked) {
    ranked.metrics.lower_bound = measure::lower_bound_of(
        scenario_, ranked.strategy, ranked.metrics.step_time, evaluator_.cache());
  }

  // Sets the optimum, by the dynamic programme's best contiguous fusion on one stream with the
  // winner's other settings, and the lower bounds of all rows. No fusion or number of streams is
  // faster than its bound.
  void grade() {
    Strategy one = tuned_.winner().strategy;
    if (one.overlap) one.streams = 1;
    const Configuration configuration(scenario_, one, evaluator_.cache());
    const FusionPlan plan = configuration.optimum();
    tuned_.optimum_exact = configuration.exact();
    if (!plan.ends.empty()) {
      Fusion fusion = by_ends(plan.ends);
      fusion.align = one.fusion.align;
      one = apply_fusion(one, fusion);
    }
    one.name = fusion_words(one.fusion);
    tuned_.optimum_strategy = one;
    tuned_.one_stream_optimum = evaluated(one, FusionKind::kExplicit).metrics.step_time;
    tuned_.optimum = std::min({tuned_.one_stream_optimum, tuned_.winner().metrics.step_time,
                               tuned_.fastest > 0 ? tuned_.fastest : tuned_.one_stream_optimum});
    for (Ranked& ranked : tuned_.ranking) bound(ranked);
    bound(tuned_.baseline);
    // Sums of the same durations in another order may leave the bound an ulp above the optimum.
    tuned_.lower_bound = tuned_.winner().metrics.lower_bound;
    if (tuned_.lower_bound < tuned_.optimum * (1 + kRounding)) {
      tuned_.lower_bound = std::min(tuned_.lower_bound, tuned_.optimum);
    }
  }

  // Evaluates the rule by size with the winner's knobs at each size that changes the partition, or
  // at kMaxCurvePoints of them, spread evenly.
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
      return apply_fusion(knobs, fusion);
    };
    const auto thresholds =
        size_thresholds(configuration.tensors(), configuration.candidates(), form);
    std::set<Bytes> sizes;
    for (const std::size_t at : spread_indices(thresholds.size(), kMaxCurvePoints)) {
      sizes.insert(thresholds[at]);
    }
    if (by_size && sizes.size() > 1) sizes.insert(best.size);
    const SeparateUnits units(scenario_.workload);
    std::map<GroupEnds, Seconds> known;  // step times, by what the plan has in groups
    for (const Bytes size : sizes) {
      if (options_.interrupted()) return;
      const Strategy strategy = tuned_.curve_strategy(size);
      const auto ends = units.ends(strategy);
      const auto found = ends ? known.find(*ends) : known.end();
      const Seconds step = found != known.end() ? found->second : model.step_time(strategy);
      if (ends) known.emplace(*ends, step);
      tuned_.curve.push_back({size, step});
    }
  }

  // Estimates the collectives that a simulation follows: the busiest link's with one stream of
  // communication, every rank's with several.
  double confirming_work(const Ranked& ranked) const {
    const bool together = ranked.strategy.overlap && ranked.strategy.streams > 1;
    return ranked.metrics.collectives * (together ? scenario_.cluster.ranks() : 1);
  }

  // Lists the best few, then the baseline, as far as the work goes.
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

  // Evaluates the best few once more, by the confirming executor.
  void confirm() {
    if (search_.confirm == 0) return;
    const std::vector<Ranked*> wanted = to_confirm();
    Evaluator evaluator(scenario_, options_.confirm);
    if (options_.parallel_map) {
      std::vector<Strategy> strategies;
      for (const Ranked* ranked : wanted) strategies.push_back(ranked->strategy);
      const auto metrics = evaluate_all(strategies, evaluator, 1, options_, options_.progress);
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
  Tuned tuned_;
  CandidateWalk walk_;
  Ranking ranking_;
};

}  // namespace

double percent_above(Seconds found, Seconds best) { return 100 * (found / best - 1); }

Tuned tune(const Scenario& scenario, const Search& search, const TuneOptions& options) {
  return Tuner(scenario, search, options).run();
}

}  // namespace syncline::tune
