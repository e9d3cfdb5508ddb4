// Links that were measured step by step: for each tier, how long a round takes in which the busiest
// port of that tier sends so many bytes. What a straight line of latency and bandwidth blurs (small
// messages that a link's buffer takes at once, thresholds of a transport) stands in the curve. A
// collective then takes, over its rounds, what the slowest tier needs for its busiest port's bytes;
// measured with one algorithm on few ranks it speaks of every algorithm on any number.
#pragma once

#include <vector>

#include "core/scenario/cluster.h"

namespace syncline::cost {

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

// The law of a cluster whose tiers have these curves, one a tier; an empty one leaves collectives
// that cross it to the links. Without the cluster's fixed cost of a collective.
CollectiveLaw step_law(const Cluster& cluster, std::vector<StepCurve> curves);

}  // namespace syncline::cost
