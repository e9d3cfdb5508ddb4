#include "studies/tune/candidate_walk.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "formats/input/knobs.h"
#include "studies/rows/memory.h"

namespace syncline::tune {
namespace {

// Largest number of candidates that is walked in full: it takes a tenth of a second.
constexpr std::size_t kMaxCheap = 1000;
// Candidates that another process is handed at once if an executor evaluates one in 0.1 ms.
constexpr std::size_t kCheapPiece = 32;
constexpr std::size_t kKinds = 7;  // of fusion
// Step times closer than this are alike: sums of the same durations in another order.
constexpr double kRounding = 1e-9;
// Candidates of a pruned walk that are chosen together if each takes milliseconds.
constexpr std::size_t kWave = 32;

// Returns whether a plan has thousands of operations.
bool takes_long(const Workload& workload) {
  constexpr double kMany = 2000;
  const double passes = static_cast<double>(workload.micro_batches) * workload.parallel.parts();
  return 2 * (passes + static_cast<double>(workload.tensors.size())) > kMany;
}

}  // namespace

bool shorter(Seconds a, Seconds b) { return a < b * (1 - kRounding); }

Ranked evaluate_candidate(const Strategy& strategy, FusionKind kind, Evaluator& evaluator) {
  return {{evaluator.metrics_of(strategy)}, strategy, kind};
}

std::vector<measure::Metrics> evaluate_all(const std::vector<Strategy>& strategies,
                                           Evaluator& evaluator, std::size_t piece,
                                           const TuneOptions& options, const Progress& progress) {
  run::JobHooks hooks;
  hooks.interrupted = options.interrupted;
  if (progress) hooks.progress = progress;
  hooks.name = [&](std::size_t i) { return "'" + strategies[i].name + "'"; };
  const auto bytes_of = [&](std::size_t i) {
    return measure::metrics_bytes(evaluator.metrics_of(strategies[i]));
  };
  return measure::metrics_from_bytes(
      in_pieces(strategies.size(), piece, options.parallel_map, bytes_of, hooks));
}

CandidateWalk::CandidateWalk(const Scenario& scenario, const Search& search,
                             const TuneOptions& options, Evaluator& evaluator, Tuned& tuned)
    : scenario_(scenario),
      search_(search),
      options_(options),
      evaluator_(evaluator),
      tuned_(tuned),
      space_(scenario, search, *find_strategy(scenario, search.base), evaluator.cache()),
      units_(scenario.workload),
      pruned_(evaluator.traits().closed_form &&
              options.method != TuneOptions::Method::kExhaustive &&
              (options.method == TuneOptions::Method::kPruned || points().size() > kMaxCheap)),
      seen_(points().size(), false),
      certain_(kKinds * options.top),
      fits_in_part_(fits_in_part()) {
  tuned.points = points().size();
  tuned.unmeasured = space_.unmeasured_names();
}

std::size_t CandidateWalk::budget() const {
  const std::size_t gradients = std::max<std::size_t>(1, scenario_.workload.tensors.size());
  std::size_t most = std::numeric_limits<std::size_t>::max();
  if (options_.budget > 0) most = options_.budget;
  if (options_.work > 0) most = std::min(most, std::max<std::size_t>(1, options_.work / gradients));
  return most;
}

// Returns the candidates as they were written if all are evaluated, else by their bounds.
std::vector<std::size_t> CandidateWalk::walking_order() const {
  std::vector<std::size_t> order(points().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (is_pruned() || budget() < points().size()) {
    // The scenario's own strategies come first: their bounds are 0.
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return points()[i].bound; });
  }
  return order;
}

Seconds CandidateWalk::smallest_bound(const std::vector<std::size_t>& order,
                                      std::size_t first) const {
  const auto left = std::span(order).subspan(first);
  const auto bound_of = [&](std::size_t i) { return points()[i].bound; };
  return bound_of(std::ranges::min(left, {}, bound_of));
}

// Reports candidates, or the budget if that ends the walk earlier.
void CandidateWalk::report_progress(std::size_t seen, std::size_t candidates) const {
  const std::size_t most = budget();
  const double of_all = static_cast<double>(seen) / static_cast<double>(candidates);
  const double of_budget = static_cast<double>(tuned_.evaluations) / static_cast<double>(most);
  const bool ends_earlier = of_budget > of_all;
  options_.progress(ends_earlier ? tuned_.evaluations : seen, ends_earlier ? most : candidates);
}

void CandidateWalk::walk() {
  tuned_.exhaustive = !is_pruned();
  const auto order = walking_order();
  const bool cheap = evaluator_.traits().cheap && order.size() <= kMaxCheap;
  if (!is_pruned() && !cheap && options_.parallel_map) {
    walk_together(order);
    return;
  }
  tuned_.baseline = evaluate_candidate(tuned_.baseline.strategy, FusionKind::kBase, evaluator_);
  for (std::size_t place = 0; place < order.size();) {
    const std::vector<std::size_t> wave = next_wave(order, place);
    if (wave.empty()) return;
    const std::size_t left = options_.interrupted() ? 0 : budget() - tuned_.evaluations;
    const std::size_t done = evaluate_wave(order, wave, left);
    if (done == wave.size()) continue;
    tuned_.complete = false;
    tuned_.left_bound = smallest_bound(order, wave[done]);
    return;
  }
}

// Returns the places of the next candidates that may matter, by the findings before all of them:
// the same for any number of processes. Moves `place` past them.
std::vector<std::size_t> CandidateWalk::next_wave(const std::vector<std::size_t>& order,
                                                  std::size_t& place) const {
  const std::size_t size = is_pruned() && takes_long(scenario_.workload) ? kWave : 1;
  std::vector<std::size_t> wave;
  for (; place < order.size() && wave.size() < size; ++place) {
    report_progress(place + 1, order.size());
    if (is_pruned() && (seen_[order[place]] || !can_matter(points()[order[place]]))) continue;
    wave.push_back(place);
  }
  return wave;
}

// Returns the key of a plan that takes long; nullopt: strategies are evaluated one by one.
std::optional<CandidateWalk::PlanKey> CandidateWalk::key_of(const Strategy& strategy,
                                                            std::size_t configuration) const {
  if (!is_pruned() || !takes_long(scenario_.workload)) return std::nullopt;
  auto ends = units_.ends(strategy);
  if (!ends) return std::nullopt;
  return PlanKey(configuration, *std::move(ends));
}

measure::Metrics CandidateWalk::metrics_of(const Strategy& strategy, std::size_t configuration) {
  const auto key = key_of(strategy, configuration);
  if (!key) return evaluator_.metrics_of(strategy);
  const auto known = known_.find(*key);
  if (known != known_.end()) return known->second;
  return known_.emplace(*key, evaluator_.metrics_of(strategy)).first->second;
}

// Returns the metrics of strategies that are evaluated at once; nullopt: an interruption left them
// out.
std::vector<std::optional<measure::Metrics>> CandidateWalk::metrics_together(
    const std::vector<Strategy>& strategies, const std::vector<std::size_t>& configurations) {
  std::vector<std::optional<PlanKey>> keys;
  std::vector<std::size_t> places;  // of the strategies to evaluate
  std::vector<Strategy> asked;
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    auto key = key_of(strategies[i], configurations[i]);
    const bool seen = key && (known_.contains(*key) || std::ranges::count(keys, key) > 0);
    keys.push_back(std::move(key));
    if (seen) continue;
    places.push_back(i);
    asked.push_back(strategies[i]);
  }
  std::vector<std::optional<measure::Metrics>> metrics(strategies.size());
  const auto found = asked.empty() ? std::vector<measure::Metrics>()
                                   : evaluate_all(asked, evaluator_, 1, options_, {});
  for (std::size_t k = 0; k < found.size(); ++k) {
    metrics[places[k]] = found[k];
    if (keys[places[k]]) known_.emplace(*keys[places[k]], found[k]);
  }
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    if (metrics[i] || !keys[i]) continue;
    const auto known = known_.find(*keys[i]);
    if (known != known_.end()) metrics[i] = known->second;
  }
  return metrics;
}

// Evaluates at most `left` candidates of a wave, in order. Returns how many.
std::size_t CandidateWalk::evaluate_wave(const std::vector<std::size_t>& order,
                                         const std::vector<std::size_t>& wave, std::size_t left) {
  std::vector<Strategy> strategies;
  std::vector<std::size_t> configurations;
  for (std::size_t i = 0; i < std::min(wave.size(), left); ++i) {
    const FusionChoice& point = points()[order[wave[i]]];
    strategies.push_back(space_.strategy_of(point));
    configurations.push_back(point.configuration);
  }
  const bool together = strategies.size() > 1 && options_.parallel_map;
  std::vector<std::optional<measure::Metrics>> metrics(strategies.size());
  if (together) metrics = metrics_together(strategies, configurations);
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    const std::size_t index = order[wave[i]];
    const FusionChoice& point = points()[index];
    if (together ? !metrics[i] : i > 0 && options_.interrupted()) return i;
    if (!metrics[i]) metrics[i] = metrics_of(strategies[i], configurations[i]);
    keep(point, {{*metrics[i]}, std::move(strategies[i]), point.kind}, index);
    seen_[index] = true;
  }
  return strategies.size();
}

// Evaluates all candidates at once, as far as the budget goes; an interruption leaves out the last.
void CandidateWalk::walk_together(const std::vector<std::size_t>& order) {
  const std::size_t wanted = std::min(budget(), order.size());
  // The baseline goes along: nothing is simulated in this process before others are forked off.
  std::vector<Strategy> strategies{tuned_.baseline.strategy};
  for (std::size_t i = 0; i < wanted; ++i) {
    strategies.push_back(space_.strategy_of(points()[order[i]]));
  }
  const std::size_t piece = evaluator_.traits().cheap ? kCheapPiece : 1;
  const auto metrics = evaluate_all(strategies, evaluator_, piece, options_, options_.progress);
  if (metrics.empty()) {
    tuned_.baseline = evaluate_candidate(tuned_.baseline.strategy, FusionKind::kBase, evaluator_);
  } else {
    tuned_.baseline.metrics = metrics.front();
  }
  const std::size_t done = std::max<std::size_t>(1, metrics.size()) - 1;
  for (std::size_t i = 0; i < done; ++i) {
    const FusionChoice& point = points()[order[i]];
    keep(point, {{metrics[i + 1]}, std::move(strategies[i + 1]), point.kind}, order[i]);
  }
  tuned_.complete = done == order.size();
  if (!tuned_.complete) tuned_.left_bound = smallest_bound(order, done);
}

std::pair<FusionKind, bool> CandidateWalk::kind_of(const FusionChoice& point) const {
  return {point.kind, input::changes_training(space_.configuration_of(point))};
}

bool CandidateWalk::fits_in_part() const {
  const auto has_room = [&](const Strategy& strategy) { return fits(strategy); };
  const auto& own = scenario_.strategies;
  const bool some = !search_.exchanges.empty() || std::ranges::any_of(own, has_room);
  return some && !std::ranges::all_of(own, has_room);
}

bool CandidateWalk::fits(const Strategy& strategy) const {
  return measure::memory_of(scenario_, strategy).fits();
}

// Returns true if a candidate fits while others do not, or if it may beat the best of its
// configuration and kind. In the second case it must also possibly be among the `certain_` best
// groups, or the best of its kind in any configuration.
bool CandidateWalk::can_matter(const FusionChoice& point) const {
  if (fits_in_part_ && fits(space_.strategy_of(point))) return true;
  const auto group = groups_.find({point.configuration, point.kind});
  if (group != groups_.end() && !shorter(point.bound, group->second.step)) return false;
  if (groups_.size() < certain_) return true;
  const auto kind = best_of_kind_.find(kind_of(point));
  if (kind == best_of_kind_.end() || shorter(point.bound, kind->second)) return true;
  std::vector<Seconds> steps;
  for (const auto& [key, best] : groups_) steps.push_back(best.step);
  const auto last = steps.begin() + static_cast<std::ptrdiff_t>(certain_) - 1;
  std::nth_element(steps.begin(), last, steps.end());
  return shorter(point.bound, *last);
}

// Keeps the best of each configuration and kind; among equals the one that was written first, in
// any order of the walk.
void CandidateWalk::keep(const FusionChoice& point, Ranked ranked, std::size_t index) {
  ++tuned_.evaluations;
  const Seconds step = ranked.metrics.step_time;
  const bool has_room = !fits_in_part_ || fits(ranked.strategy);
  const auto kind = best_of_kind_.try_emplace(kind_of(point), step).first;
  kind->second = std::min(kind->second, step);
  auto [group, fresh] = groups_.try_emplace({point.configuration, point.kind});
  GroupBest& best = group->second;
  const bool alike = !fresh && !shorter(step, best.step) && !shorter(best.step, step);
  const bool better = alike ? index < best.index : step < best.step;
  if (!fresh && (has_room != best.fits ? !has_room : !better)) return;
  best = {step, index, std::move(ranked), has_room};
}

}  // namespace syncline::tune
