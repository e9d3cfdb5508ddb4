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

// Figures of an update on the host (core/plan/offload.h).

// Time of a node's processors per parameter, without a measurement: the geometric mean of published
// times. DeepSpeed's CPU-Adam takes 0.22 s per 1e9 parameters with all 48 cores of a DGX-2 (Ren et
// al., arXiv:2101.06840, table 4; torch's Adam there 1.39 s). LLaMA 7B on 8 A800 with two Xeon 8358
// takes 2.5 to 3 s per 1e9 more with the offload than without it (chenyaofo's table of ZeRO stages,
// gist d4cd6a20, 2024): each rank of a launch has one thread by default.
inline constexpr Seconds kHostUpdateLeast = 0.22e-9;
inline constexpr Seconds kHostUpdateMost = 3e-9;
inline constexpr Seconds kHostUpdate = 0.81e-9;

// Rate of a device's link to its host's memory without a figure: PCIe 4.0 with 16 lanes, four
// fifths of 31.5 GB/s.
inline constexpr BytesPerSecond kHostLink = 25e9;

// Returns the figures of a device, or the assumed ones.
inline Seconds host_update(const Device& device) {
  return device.host_update > 0 ? device.host_update : kHostUpdate;
}
inline BytesPerSecond host_link(const Device& device) {
  return device.host_link > 0 ? device.host_link : kHostLink;
}

}  // namespace syncline
