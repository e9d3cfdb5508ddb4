// A configuration of the search: a strategy without its fusion. It determines which gradients may
// be grouped, when they are ready, and the cost of a bucket. It computes the optimum by dynamic
// programming and a bound for any buckets without running a plan.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/base/units.h"
#include "core/cost.h"
#include "core/plan.h"
#include "formats/scenario/scenario.h"
#include "studies/tune/thresholds.h"

namespace syncline::tune {

// Finds the best fusion for one communication stream by dynamic programming: a strategy (explicit
// buckets) and the reference for every other rule.

// Time for which a bucket of the gradients [first, end) occupies the stream.
using RunCost = std::function<Seconds(std::size_t first, std::size_t end)>;

struct FusionPlan {
  Seconds finish = 0;             // finish of the last bucket
  std::vector<std::size_t> ends;  // last gradient of each bucket, in order
};

// Returns the best contiguous buckets for any cost in O(L^2) calls and O(L) memory. Among equals,
// the longest bucket is taken. Requires that `ready` does not fall.
FusionPlan best_fusion(const std::vector<Seconds>& ready, const RunCost& cost);

class Configuration {
 public:
  // Stores the strategy with its alignment, without its fusion. Requires that scenario and cache
  // outlive the configuration.
  Configuration(const Scenario& scenario, Strategy strategy, collective::CostCache& cache);

  // Sets the number of streams, on which neither readiness nor a bucket's cost depends.
  void set_streams(int streams);

  const Scenario& scenario() const { return scenario_; }
  const Strategy& strategy() const { return strategy_; }
  // Returns the cluster as seen by the ranks that sum one gradient.
  const Cluster& cluster() const { return cluster_; }
  // Returns true if the job or its cluster does not support a strategy.
  bool is_unsupported(const Strategy& strategy) const;
  // Returns the input of fusion rules (core/plan/fusion's `fuse`): gradients in ready order; under
  // LocalSGD, parameters and buffers in the order of averaging.
  const std::vector<const Tensor*>& tensors() const { return tensors_; }
  const std::vector<int>& candidates() const { return candidates_; }
  // Returns the candidates as units of rules that do not join layers.
  const FusionUnits& units() const { return units_; }

  // Returns true if step_time is exact for contiguous buckets: one stream, no traffic outside the
  // buckets, no cost of a bucket on the compute stream, at most kMaxExact gradients. Then
  // `optimum` is the best of all fusions; otherwise it is a good candidate.
  bool exact() const { return exact_; }
  FusionPlan optimum() const;

  // Returns a lower bound of the step time for buckets that are runs of `candidates`, each ending
  // before one of `ends`; without ends, for any buckets. With ends and an exact configuration it is
  // the step time.
  Seconds lower_bound(const GroupEnds& ends) const;
  // Returns the same bound for each of these numbers of streams.
  std::vector<Seconds> lower_bounds(const GroupEnds& ends, const std::vector<int>& streams) const;
  // Returns the same bound for any fusion.
  Seconds lower_bound() const { return lower_bound_; }
  // Returns seconds per step for a finish of the last bucket.
  Seconds step_time(Seconds finish) const;

 private:
  std::vector<Seconds> ready_times(const plan::Plan& plan);
  void find_candidates(const plan::Plan& plan, const std::vector<Seconds>& ready);
  void judge_order(const plan::Plan& plan, std::size_t phases);
  void judge_exactness();
  void prepare_costs();
  Seconds encode_launches() const;  // seconds per bucket
  Seconds cost(std::size_t first, std::size_t end) const;
  plan::Bucket join_buckets(std::size_t first, std::size_t end) const;
  Seconds exchange_time(plan::Bucket bucket) const;
  Seconds cost_of_size(std::size_t number) const;
  Seconds known_cost(Bytes bytes) const;

  const Scenario& scenario_;
  Cluster cluster_;
  Strategy strategy_;
  collective::CostCache& cache_;
  std::vector<const Tensor*> tensors_;
  std::vector<int> candidates_;
  FusionUnits units_{{}, {}, {}};
  std::vector<plan::Bucket> single_;  // one bucket per candidate
  std::vector<plan::Bucket> sums_;    // prefix sums of their sizes
  std::vector<Bytes> padded_;         // of these, padded_bytes, which bounds read millions of times
  std::vector<Seconds> ready_;        // per candidate, including stragglers
  Seconds computed_ = 0;              // finish of the compute stream except for the tail
  Seconds tail_ = 0;                  // time after the last exchange
  double steps_ = 1;                  // steps in a period
  double link_seconds_per_byte_ = 0;  // time per byte of the busiest link; 0: unknown
  bool simple_ = false;               // no traffic except buckets of the candidates
  bool encodes_ = false;              // some candidates
  bool exact_ = false;
  Seconds lower_bound_ = 0;
  bool low_rank_ = false;  // some candidates use a low-rank codec
  // Per run up to kMaxExact gradients, beyond that per size. Negative: not computed yet.
  mutable std::vector<Seconds> costs_;
  mutable std::vector<Seconds> least_costs_;  // from each size to the next, likewise
};

}  // namespace syncline::tune
