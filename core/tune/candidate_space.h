// Every candidate of a search: the scenario's own strategies that train alike, each configuration
// with each of its fusions, and a bound for the step time of each.
#pragma once

#include <cstddef>
#include <vector>

#include "core/scenario/search.h"
#include "core/tune/configuration.h"
#include "core/tune/fusion_choices.h"

namespace syncline::tune {

// Whether NCCL was calibrated on the cluster, and some collective of the strategy was not.
bool has_unmeasured(const Scenario& scenario, const Strategy& strategy);

class CandidateSpace {
 public:
  struct Point {
    std::size_t configuration = 0;
    FusionKind kind = FusionKind::kBase;
    Fusion fusion;
    Seconds bound = 0;     // no run of the candidate takes less by the model
    bool own_row = false;  // a strategy of the scenario, as it stands
  };

  // All of `scenario`, `base` and `cache` must outlive this.
  CandidateSpace(const Scenario& scenario, const Search& search, const Strategy& base,
                 collective::CostCache& cache);

  const std::vector<Point>& points() const { return points_; }
  const Strategy& configuration_of(const Point& point) const {
    return configurations_[point.configuration];
  }
  // The candidate, named by what it does otherwise than the base.
  Strategy strategy_of(const Point& point) const;
  Strategy named(Strategy strategy, FusionKind kind) const;
  // What was left out, as a measured cost is no match for one of bare links: the names of rows,
  // and algorithms.
  const std::vector<std::string>& unmeasured() const { return unmeasured_; }

 private:
  const Strategy& base_;
  std::vector<Strategy> configurations_;
  std::vector<Point> points_;
  std::vector<std::string> unmeasured_;
};

}  // namespace syncline::tune
