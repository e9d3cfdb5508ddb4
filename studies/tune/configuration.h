// A configuration of the search: a strategy with everything fixed but its fusion. It knows what
// fusing means there (which gradients may be grouped, when they are ready, what a bucket costs), so
// that it can give the optimum of the dynamic programme and a bound for any buckets without running
// a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/units.h"
#include "core/cost.h"
#include "core/plan.h"
#include "formats/scenario/scenario.h"
#include "studies/tune/thresholds.h"

namespace syncline::tune {

// The best fusion for one communication stream, by dynamic programming: both a strategy (explicit
// buckets) and the yardstick for every other rule.

// The time that one bucket of the gradients [first, end) keeps the stream.
using RunCost = std::function<Seconds(std::size_t first, std::size_t end)>;

struct FusionPlan {
  Seconds finish = 0;             // of the last bucket
  std::vector<std::size_t> ends;  // the last gradient of each bucket, in order
};

// The best contiguous buckets for any cost: O(L^2) calls of it, O(L) memory. `ready` does not fall.
// Of equal choices the longest bucket is taken.
FusionPlan best_fusion(const std::vector<Seconds>& ready, const RunCost& cost);

// In front of which candidate each group of a fusion ends, rising. A search keeps millions.
using GroupEnds = std::vector<std::uint32_t>;

class Configuration {
 public:
  // The scenario and the cache must outlive the configuration. The strategy's own fusion is
  // ignored, its alignment is kept.
  Configuration(const Scenario& scenario, Strategy strategy, collective::CostCache& cache);

  // Costs of buckets do not depend on the number of streams: a configuration that differs from
  // `other` in that alone need not work them out again.
  void share_costs(const Configuration& other) { costs_ = other.costs_; }

  const Scenario& scenario() const { return scenario_; }
  const Strategy& strategy() const { return strategy_; }
  // As those see it that sum one gradient.
  const Cluster& cluster() const { return cluster_; }
  // Whether the job or its cluster does not go with a strategy.
  bool rules_out(const Strategy& strategy) const;
  // What fusion rules choose from (core/plan/fusion's `fuse`): gradients in ready order, or, under
  // LocalSGD, parameters and buffers in the order in which they are averaged.
  const std::vector<const Tensor*>& tensors() const { return tensors_; }
  const std::vector<int>& candidates() const { return candidates_; }

  // The step time of contiguous buckets is exactly what step_time says: one stream, nothing that
  // travels outside the buckets, no cost of a bucket on the compute stream, and no more than
  // kMostExact gradients. Then `optimum` is the best of all fusions; otherwise it is a good
  // candidate.
  bool exact() const { return exact_; }
  FusionPlan optimum() const;

  // Seconds a step that no run of this strategy goes below with buckets that are runs of
  // `candidates`, each ending in front of one of `ends`, or, without ends, with whatever buckets;
  // where there are ends and the configuration is exact, the step time itself.
  Seconds bound(const GroupEnds& ends) const;
  // The same, whatever is fused.
  Seconds lower_bound() const { return lower_bound_; }
  // From the finish of the last bucket to seconds a step.
  Seconds step_time(Seconds finish) const;

 private:
  std::vector<Seconds> ready_times(const plan::Plan& plan);
  void find_candidates(const plan::Plan& plan, const std::vector<Seconds>& ready);
  void judge_exactness(const plan::Plan& plan, std::size_t phases);
  void prepare_costs();
  Seconds encode_launches() const;  // of one bucket
  Seconds cost(std::size_t first, std::size_t end) const;
  plan::Bucket joined(std::size_t first, std::size_t end) const;
  Seconds exchange_time(plan::Bucket bucket) const;
  Seconds known_cost(Bytes bytes) const;

  const Scenario& scenario_;
  Cluster cluster_;
  Strategy strategy_;
  collective::CostCache& cache_;
  std::vector<const Tensor*> tensors_;
  std::vector<int> candidates_;
  std::vector<plan::Bucket> single_;  // each candidate alone
  std::vector<plan::Bucket> sums_;    // the sizes of the first so many of them together
  std::vector<Seconds> ready_;        // by candidate, stragglers included
  Seconds computed_ = 0;              // when the compute stream has nothing left but the tail
  Seconds tail_ = 0;                  // what follows the last exchange
  double steps_ = 1;                  // of a period
  double link_seconds_per_byte_ = 0;  // of the busiest link; 0: unknown
  bool simple_ = false;               // buckets of the candidates are all that travels
  bool exact_ = false;
  Seconds lower_bound_ = 0;
  bool low_rank_ = false;  // some of them by a codec of low rank
  // Of runs, up to kMostExact gradients; beyond, of sizes. Below 0: not worked out yet.
  std::shared_ptr<std::vector<Seconds>> costs_;
};

}  // namespace syncline::tune
