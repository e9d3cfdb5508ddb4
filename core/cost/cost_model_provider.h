// The measured cost model as costs ask for it: how long a collective of a plan takes alone.
#pragma once

#include <vector>

#include "core/cluster.h"
#include "core/collective/collective.h"
#include "core/cost/cost_model.h"

namespace syncline::cost {

// How the first of the groups lies on nodes of `gpus_per_node` ranks, and how many groups have
// members on its first node. In time that grows with neither the ranks nor the groups, unless
// members lie askew to the nodes.
struct GroupShape {
  int nodes = 0;
  int gpus_per_node = 0;  // members on each node; 0: uneven
  int groups_per_node = 1;
  bool operator==(const GroupShape&) const = default;
};

GroupShape group_shape(const collective::Groups& groups, int gpus_per_node);

// Answers for collectives that NCCL runs (`nccl` set), and for the algorithms `ring` and
// `double_binary_tree` where NCCL was measured while forced to them: the counts are those of one
// group. Groups that cross nodes side by side share their node's rate. Nothing for groups that lie
// unevenly over nodes, and for what the cost model knows nothing of: the caller decides then.
// Measured times hold the launch: `overhead`, which costs add to every collective, is taken off.
CollectiveCostModel collective_cost_model(MeasuredCostModel cost_model, int gpus_per_node,
                                          Seconds overhead);

// Links that were measured step by step: for each tier, how long a round takes in which the busiest
// port of that tier sends so many bytes. What a straight line of latency and bandwidth blurs (small
// messages that a link's buffer takes at once, thresholds of a transport) stands in the curve. A
// collective then takes, over its rounds, what the slowest tier needs for its busiest port's bytes;
// measured with one algorithm on few ranks it speaks of every algorithm on any number.
struct StepPoint {
  double bytes = 0;
  Seconds seconds = 0;
};

// In order of bytes, at least two. Between points a straight line; below the first the first, above
// the last on with the slope of the last two.
using StepCurve = std::vector<StepPoint>;

Seconds step_time(const StepCurve& curve, double bytes);
// Bytes per second of the largest steps.
BytesPerSecond slope_of(const StepCurve& curve);

// Returns the cost model of a cluster whose tiers have these curves, one a tier; an empty one
// leaves collectives that cross it to the links. Without the cluster's fixed cost of a collective.
CollectiveCostModel step_cost_model(const Cluster& cluster, std::vector<StepCurve> curves);

}  // namespace syncline::cost
