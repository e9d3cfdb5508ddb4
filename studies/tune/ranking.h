// The order of the candidates that a walk found: those that fit first, then the fastest. Among
// those that no measurement tells apart, the simplest, of a round size.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "studies/tune/candidate_walk.h"

namespace syncline::tune {

// Candidates within this of the best are as good as it: no measurement tells them apart.
inline constexpr double kEqual = 1e-3;

// Puts `ranked` into the ranking after the best, by step time. It is left out if it is no slower
// than the best (it takes more effort, or is no round size), or if the ranking has its figures
// already.
void add_slower(Ranked ranked, Tuned& tuned);

class Ranking {
 public:
  // Builds a ranking. All arguments must outlive it.
  Ranking(const Scenario& scenario, const Search& search, const TuneOptions& options,
          Evaluator& evaluator, CandidateWalk& walk, Tuned& tuned)
      : scenario_(scenario),
        search_(search),
        options_(options),
        evaluator_(evaluator),
        walk_(walk),
        tuned_(tuned) {}

  // Ranks all candidates that the walk has kept so far.
  void rank();

 private:
  const std::vector<FusionChoice>& points() const { return walk_.space().points(); }
  const GroupBest& simplest(const std::vector<GroupBest*>& bests) const;
  Ranked recommend(const std::vector<GroupBest*>& bests);
  Ranked rounder(const GroupBest& best);
  int effort_of(const GroupBest& best) const;

  const Scenario& scenario_;
  const Search& search_;
  const TuneOptions& options_;
  Evaluator& evaluator_;
  CandidateWalk& walk_;
  Tuned& tuned_;
  std::map<std::pair<std::size_t, Bytes>, Ranked> round_;  // by candidate and size
};

}  // namespace syncline::tune
