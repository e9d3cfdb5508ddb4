// The walk over a search's candidates: each is evaluated, or left out because its bound shows that
// it cannot matter. Small spaces are walked in full; large ones in the order of their bounds. Both
// find the same best ones.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "studies/tune/evaluator.h"
#include "studies/tune/search_space.h"
#include "studies/tune/tuner.h"

namespace syncline::tune {

// Returns true if step `a` is shorter than `b` by more than rounding: sums of the same durations in
// another order differ a little.
bool shorter(Seconds a, Seconds b);

Ranked evaluate_candidate(const Strategy& strategy, FusionKind kind, Evaluator& evaluator);

// Called with the number of strategies that are done, and of all. May be empty.
using Progress = std::function<void(std::size_t, std::size_t)>;

// Evaluates the strategies by `evaluator`, `piece` at a time, elsewhere if the options have a
// parallel map. Returns the first ones without a gap if interrupted.
std::vector<measure::Metrics> evaluate_all(const std::vector<Strategy>& strategies,
                                           Evaluator& evaluator, std::size_t piece,
                                           const TuneOptions& options, const Progress& progress);

// The fastest candidate of one configuration and one kind of fusion.
struct GroupBest {
  Seconds step = 0;
  std::size_t index = 0;  // of the candidate in the space
  Ranked ranked;
  bool fits = true;  // into the device's memory
};

class CandidateWalk {
 public:
  // Builds a walk. All arguments must outlive it. `tuned` has the strategies of base and baseline;
  // a walk evaluates the baseline, and stores its counts and bounds there.
  CandidateWalk(const Scenario& scenario, const Search& search, const TuneOptions& options,
                Evaluator& evaluator, Tuned& tuned);

  // Evaluates the candidates that may matter.
  void walk();

  // Searches further, until twice as many of the best groups are certain.
  void widen() {
    certain_ *= 2;
    walk();
  }

  const CandidateSpace& space() const { return space_; }
  std::map<std::pair<std::size_t, FusionKind>, GroupBest>& groups() { return groups_; }
  // Returns the number n for which the n best groups are certainly found. Groups with the same
  // figures are one row of a ranking.
  std::size_t certain() const { return is_pruned() ? certain_ : groups_.size(); }
  // Returns true if bounds leave candidates out. They hold for the closed form. The simulation may
  // be a little faster, so its bounds only set the order.
  bool is_pruned() const { return pruned_; }
  bool fits(const Strategy& strategy) const;
  // Returns the metrics of a strategy that differs from this configuration in its fusion alone.
  // Evaluates one of the strategies that have the same plan.
  measure::Metrics metrics_of(const Strategy& strategy, std::size_t configuration);

 private:
  // A configuration and the groups of its gradients, which decide a plan.
  using PlanKey = std::pair<std::size_t, GroupEnds>;

  const std::vector<FusionChoice>& points() const { return space_.points(); }
  std::optional<PlanKey> key_of(const Strategy& strategy, std::size_t configuration) const;
  std::vector<std::optional<measure::Metrics>> metrics_together(
      const std::vector<Strategy>& strategies, const std::vector<std::size_t>& configurations);
  // Returns the candidates evaluated at most.
  std::size_t budget() const;
  std::vector<std::size_t> walking_order() const;
  // Returns the smallest bound of the candidates from place `first` of the order on.
  Seconds smallest_bound(const std::vector<std::size_t>& order, std::size_t first) const;
  void report_progress(std::size_t seen, std::size_t candidates) const;
  std::vector<std::size_t> next_wave(const std::vector<std::size_t>& order,
                                     std::size_t& place) const;
  std::size_t evaluate_wave(const std::vector<std::size_t>& order,
                            const std::vector<std::size_t>& wave, std::size_t left);
  void walk_together(const std::vector<std::size_t>& order);
  // Returns the kind, and whether the candidate changes the training: both have a best of their
  // own.
  std::pair<FusionKind, bool> kind_of(const FusionChoice& point) const;
  // Returns whether some candidates fit into the device's memory and others may not: the fastest
  // may be one that does not.
  bool fits_in_part() const;
  bool can_matter(const FusionChoice& point) const;
  void keep(const FusionChoice& point, Ranked ranked, std::size_t index);

  const Scenario& scenario_;
  const Search& search_;
  const TuneOptions& options_;
  Evaluator& evaluator_;
  Tuned& tuned_;
  CandidateSpace space_;
  SeparateUnits units_;
  std::map<PlanKey, measure::Metrics> known_;  // of plans that take long
  bool pruned_;
  std::vector<bool> seen_;  // points that were evaluated in a pruned walk
  std::size_t certain_;     // the best groups that a pruned walk finds for certain
  bool fits_in_part_;
  std::map<std::pair<std::size_t, FusionKind>, GroupBest> groups_;
  std::map<std::pair<FusionKind, bool>, Seconds> best_of_kind_;
};

}  // namespace syncline::tune
