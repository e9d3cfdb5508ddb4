// What computation and collectives take from each other where nobody measured it.
#pragma once

#include <cmath>

#include "core/scenario/cluster.h"

namespace syncline {

struct OverlapPrior {
  Overlap likely;
  // By which all of `likely` is scaled at the ends of what is to be expected.
  double least = 1;
  double most = 1;
};

// NCCL: on 4 A100, H100, MI210 or MI250 training GPT and LLaMA models computation took 18.9 %
// longer in the mean, 3 % at least and 40.0 % at most, with communication beside it (Lee et al.,
// arXiv:2507.03114, 2025). What communication loses was not measured there: taken to be alike.
//
// Gloo: two ranks on two processors of a virtual machine that compute all the time, behind links of
// 0.5 and 1 Gbit/s (scenarios/jobs): sockets, reductions and interrupts take a quarter to nearly a
// half of the processors while a collective runs, each of which waits one tick of the scheduler for
// its turn. Where processors are left over, next to nothing is lost.
//
// Links, of which nothing is known: nothing.
inline OverlapPrior overlap_prior(Library library) {
  switch (library) {
    case Library::kNccl:
      return {{0.189, 0.189, 0, false}, 0.16, 2.1};
    case Library::kGloo:
      return {{0.45, 0, 4 * kMillisecond, false}, 0.05, 1.6};
    case Library::kLinks:
      break;
  }
  return {};
}

// What is believed of a cluster: its own figures where it gives them, nothing where it tells the
// same in another form, else what is known of its library. `least` and `most` bound 80 % of what is
// to be expected.
inline OverlapPrior overlap_belief(const Cluster& cluster) {
  const Overlap& overlap = cluster.device.overlap;
  if (!overlap.given && cluster.device.data_parallel_slowdown > 0) return {};
  if (!overlap.given) return overlap_prior(cluster.library);
  constexpr double kDeviations = 1.2815515655446004;
  const double most = std::exp(kDeviations * overlap.spread);
  return {overlap, 1 / most, most};
}

}  // namespace syncline
