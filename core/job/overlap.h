// What computation and collectives are believed to take from each other on a cluster.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/cluster.h"

namespace syncline {

// Returns what is known of the cluster's library, for a cluster that nobody measured. A
// data_parallel_slowdown tells a part of the same in another form: so much less is assumed.
inline OverlapPrior overlap_assumed(const Cluster& cluster) {
  OverlapPrior prior = overlap_prior(cluster.library, joined_by_switch(cluster));
  Overlap& likely = prior.likely;
  if (likely.slowdown <= 0) return prior;
  const double left = std::max(0.0, 1 - cluster.device.data_parallel_slowdown / likely.slowdown);
  likely.slowdown *= left;
  likely.collective_slowdown *= left;
  likely.delay *= left;
  return prior;
}

// Returns the cluster's own figures where it gives them, else what is assumed. `least` and `most`
// bound 80 % of what is to be expected.
inline OverlapPrior overlap_believed(const Cluster& cluster) {
  const Overlap& overlap = cluster.device.overlap;
  if (!overlap.given) return overlap_assumed(cluster);
  constexpr double kDeviations = 1.2815515655446004;
  const double most = std::exp(kDeviations * overlap.spread);
  return {overlap, 1 / most, most};
}

}  // namespace syncline
