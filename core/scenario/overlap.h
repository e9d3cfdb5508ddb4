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

// NCCL where a switch or a mesh of NVLinks joins a node's GPUs: on 4 A100, H100, MI210 or MI250
// training GPT and LLaMA models computation took 18.9 % longer in the mean, 3 % at least and 40.0 %
// at most, with communication beside it (Lee et al., arXiv:2507.03114, 2025). What communication
// loses was not measured there: taken to be alike.
//
// NCCL where they talk over PCIe, through host memory, or two by two: published steps of DDP on 2
// RTX 3090 (huggingface/transformers issue 9371), 2 RTX 5090 and 2 H100 (CS336's second assignment,
// by several hands) ask for 0.3 to 1.2, most for 0.6 to 0.7.
//
// Gloo: two ranks on two processors of a virtual machine that compute all the time, behind links of
// 0.5 and 1 Gbit/s (scenarios/jobs): sockets, reductions and interrupts take a quarter to nearly a
// half of the processors while a collective runs, each of which waits one tick of the scheduler for
// its turn. Where processors are left over, next to nothing is lost.
//
// Links, of which nothing is known: nothing.
inline OverlapPrior overlap_prior(Library library, bool joined_by_switch) {
  switch (library) {
    case Library::kNccl:
      if (!joined_by_switch) return {{0.65, 0.65, 0, false}, 0.5, 1.6};
      return {{0.189, 0.189, 0, false}, 0.16, 2.1};
    case Library::kGloo:
      return {{0.45, 0, 4 * kMillisecond, false}, 0.05, 1.6};
    case Library::kLinks:
      break;
  }
  return {};
}

// Whether a node's GPUs are three or more, joined by NVLink or the like: faster than PCIe is. A
// node with one GPU counts as such, as nothing else is known of its path.
inline bool joined_by_switch(const Cluster& cluster) {
  constexpr BytesPerSecond kFastestPcie = 64 * kGigabytePerSecond;
  if (cluster.gpus_per_node == 1 || cluster.tiers.empty()) return true;
  const bool nvlink = cluster.nccl.nvlink.value_or(cluster.tiers.front().bandwidth > kFastestPcie);
  return nvlink && cluster.gpus_per_node > 2;
}

// What is believed of a cluster: its own figures where it gives them, nothing where it tells the
// same in another form, else what is known of its library. `least` and `most` bound 80 % of what is
// to be expected.
inline OverlapPrior overlap_estimate(const Cluster& cluster) {
  const Overlap& overlap = cluster.device.overlap;
  if (!overlap.given && cluster.device.data_parallel_slowdown > 0) return {};
  if (!overlap.given) return overlap_prior(cluster.library, joined_by_switch(cluster));
  constexpr double kDeviations = 1.2815515655446004;
  const double most = std::exp(kDeviations * overlap.spread);
  return {overlap, 1 / most, most};
}

}  // namespace syncline
