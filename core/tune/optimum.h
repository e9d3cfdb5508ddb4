// The best fusion for one communication stream, by dynamic programming: both a strategy (explicit
// buckets) and the yardstick for every other rule.
//
// Gradients 0..L-1 become ready in this order. A bucket is a run of them, released when its last
// one is ready; buckets go one after the other over one stream. C[i], the earliest time at which
// the first i gradients can have been exchanged, follows from
//   C[0] = 0,   C[i] = min over j < i of max(C[j], ready[i-1]) + cost(j, i),
// because a prefix matters only through its finish. Exact for every cost of a run; with an affine
// one (latency + bytes * rate) no grouping that is not contiguous, and no other order, is better:
// moving a gradient from a later bucket to an earlier-released one never raises a suffix sum.
//
// Several streams that share one link are bounded by fusion_lower_bound, which one stream often
// reaches. Costs that depend on what other streams do are outside this page.
#pragma once

#include <functional>
#include <vector>

#include "core/units.h"

namespace syncline {

// Gradients in ready order. `ready` does not fall; both lists have the same length.
struct FusionProblem {
  std::vector<Seconds> ready;
  std::vector<double> bytes;
};

// The time that one bucket of the gradients [first, end) keeps the stream.
using RunCost = std::function<Seconds(std::size_t first, std::size_t end)>;

struct AffineCost {
  Seconds latency = 0;          // at least 0
  double seconds_per_byte = 0;  // at least 0
};

struct FusionPlan {
  Seconds finish = 0;             // of the last bucket
  std::vector<std::size_t> ends;  // the last gradient of each bucket, in order
};

// The best contiguous buckets for any cost: O(L^2) calls of it, O(L) memory. Of equal choices the
// longest bucket is taken.
FusionPlan best_fusion(const std::vector<Seconds>& ready, const RunCost& cost);

// The same for an affine cost in O(L). C does not fall, so the prefixes that are done by ready[i-1]
// (of which the longest is best) and those that are not (of which the smallest C[j] - rate * M[j]
// is best, M the prefix sums of bytes) part at an index that only moves right; the second minimum
// is that of a sliding window.
FusionPlan best_fusion(const FusionProblem& problem, const AffineCost& cost);

// When the last of these buckets has been exchanged. `ends` rise and end with the last gradient.
Seconds finish_of(const std::vector<Seconds>& ready, const std::vector<std::size_t>& ends,
                  const RunCost& cost);

// What no fusion goes below, on any number of streams that share the link and never leave it idle
// while a bucket waits: max over i of ready[i] + latency + rate * (bytes from i on).
Seconds fusion_lower_bound(const FusionProblem& problem, const AffineCost& cost);

// The affine cost of runs of a problem's gradients.
RunCost run_cost(const FusionProblem& problem, const AffineCost& cost);

}  // namespace syncline
