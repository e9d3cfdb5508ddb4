// Assumed mutual slowdown of computation and collectives on a cluster.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/cluster.h"

namespace syncline {

// Returns the prior of the cluster's library, for a cluster without a measurement. It is reduced by
// data_parallel_slowdown, which already contains a part of the slowdown.
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

// Returns the cluster's own values if given, else the assumed ones. `least` and `most` bound 80 %
// of the expected range.
inline OverlapPrior overlap_believed(const Cluster& cluster) {
  const Overlap& overlap = cluster.device.overlap;
  if (!overlap.given) return overlap_assumed(cluster);
  constexpr double kDeviations = 1.2815515655446004;
  const double most = std::exp(kDeviations * overlap.spread);
  return {overlap, 1 / most, most};
}

}  // namespace syncline
