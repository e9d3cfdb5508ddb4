// The measured cost model as a source of costs: the time of a plan's collective alone.
#pragma once

#include <vector>

#include "core/cluster.h"
#include "core/collective/collective.h"
#include "core/cost/cost_model.h"

namespace syncline::cost {

// Position of the first of the groups on nodes of `gpus_per_node` ranks, and the number of groups
// with members on its first node. The time to find it grows with neither ranks nor groups, unless
// members are unaligned with the nodes.
struct GroupShape {
  int nodes = 0;
  int gpus_per_node = 0;  // members on each node; 0: uneven
  int groups_per_node = 1;
  bool operator==(const GroupShape&) const = default;
};

GroupShape group_shape(const collective::Groups& groups, int gpus_per_node);

// Returns a cost model for collectives that NCCL runs (`nccl` set), and for `ring` and
// `double_binary_tree` if NCCL was measured while forced to them; counts are those of one group.
// Concurrent groups across nodes share their node's rate. It is empty for groups that lie unevenly
// over nodes, and for unmeasured collectives: the caller decides then. Measured times include the
// launch: `overhead`, which costs add to every collective, is subtracted.
CollectiveCostModel collective_cost_model(MeasuredCostModel cost_model, int gpus_per_node,
                                          Seconds overhead);

// Links measured step by step: for each tier, the duration of a round by the bytes that the tier's
// busiest port sends. The curve keeps details that a line of latency and bandwidth blurs: small
// messages that fit a link's buffer, thresholds of a transport. A collective takes, summed over its
// rounds, the slowest tier's time for its busiest port. Measured with one algorithm on few ranks,
// it predicts every algorithm on any number.
struct StepPoint {
  double bytes = 0;
  Seconds seconds = 0;
};

// Points by ascending bytes, at least two. step_time interpolates linearly; below the first point
// it is constant, above the last it has the slope of the last two.
using StepCurve = std::vector<StepPoint>;

Seconds step_time(const StepCurve& curve, double bytes);
// Returns the bytes per second of the largest steps.
BytesPerSecond slope_of(const StepCurve& curve);

// Returns the cost model of a cluster with one of these curves per tier; collectives that cross a
// tier with an empty curve are left to the links. Without the cluster's fixed cost of a collective.
CollectiveCostModel step_cost_model(const Cluster& cluster, std::vector<StepCurve> curves);

}  // namespace syncline::cost
