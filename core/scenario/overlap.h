// What computation and collectives are believed to take from each other on a cluster.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/scenario/cluster.h"

namespace syncline {

// Where nobody measured it: what is known of the cluster's library; where nothing says which one
// that is (no device, or one of an unknown kind), of NCCL. A data_parallel_slowdown tells a part of
// the same in another form: so much less is assumed.
inline OverlapPrior overlap_assumed(const Cluster& cluster) {
  const bool unknown = cluster.library == Library::kLinks && !cluster.library_given;
  OverlapPrior prior =
      overlap_prior(unknown ? Library::kNccl : cluster.library, joined_by_switch(cluster));
  Overlap& likely = prior.likely;
  if (likely.slowdown <= 0) return prior;
  const double left = std::max(0.0, 1 - cluster.device.data_parallel_slowdown / likely.slowdown);
  likely.slowdown *= left;
  likely.collective_slowdown *= left;
  likely.delay *= left;
  return prior;
}

// The cluster's own figures where it gives them, else what is assumed. `least` and `most` bound
// 80 % of what is to be expected.
inline OverlapPrior overlap_believed(const Cluster& cluster) {
  const Overlap& overlap = cluster.device.overlap;
  if (!overlap.given) return overlap_assumed(cluster);
  constexpr double kDeviations = 1.2815515655446004;
  const double most = std::exp(kDeviations * overlap.spread);
  return {overlap, 1 / most, most};
}

}  // namespace syncline
