// What one algorithm and protocol of NCCL costs between nodes, for every count of nodes and GPUs at
// once. Four parameters, found from measured rows, with NCCL's own constants as the prior:
//
//   ring   T = base + [ (latency * (crossing + intra_share * other steps))^p
//                       + (steps * bytes / ranks / bandwidth)^p ]^(1/p)
//   tree   T = base + 2 * (hops * latency + (GPUs a node - 1) * chain)
//                   + hops * fill * (bytes / 1 MiB)^0.42 + f * bytes / bandwidth,
//          hops = floor(log2(nodes)), f = 1 at 2 nodes, else 2
//
// For a ring the regimes belong to the message of a step, bytes / ranks, so a law measured at one
// count holds at others. p = 1 adds, 4 is nearly a maximum (a floor per step); the data choose.
// Bandwidth is what a node sends and receives in one direction.
#pragma once

#include <array>
#include <vector>

#include "core/cost/path_choice.h"

namespace syncline::cost {

struct StepLaw {
  StepPath path;
  Seconds base = 0;
  Seconds latency = 0;  // of a step between nodes, or of a hop
  BytesPerSecond bandwidth = 0;
  double intra_share = 0;  // rings: what a step inside the node costs, in steps between nodes
  Seconds fill = 0;        // trees: a pipeline's filling, per hop, of 1 MiB
  double exponent = 1;     // rings: p
  Seconds chain = 0;       // trees: of a step inside the node, not fitted
};

// Seconds. `share` scales the bandwidth: GPUs a node other than the law's own.
Seconds step_time(const StepLaw& law, collective::CollectiveKind kind, double bytes, int nodes,
                  int gpus_per_node, double share);

// What is believed before any row is seen: NCCL's latencies times `latency_scale` (and what is
// usual of the path), give or take a factor e^`latency_spread`, and a bandwidth near `bandwidth`.
struct StepPrior {
  double latency_scale = 1;
  double latency_spread = 1.5;
  BytesPerSecond bandwidth = 0;
  double inside_scale = 1;  // on NCCL's latencies inside a node
};
StepLaw prior_law(StepPath path, const StepPrior& prior);

struct StepRow {
  collective::CollectiveKind kind = collective::CollectiveKind::kAllReduce;
  double bytes = 0;
  int nodes = 1;
  int gpus_per_node = 1;
  double share = 1;
  Seconds time = 0;
};

struct StepFit {
  StepLaw law;
  double cost = 0;  // minus the logarithm of the likelihood, prior included, up to a constant
};

// Least squares of the relative errors, damped for outliers, and of the distances to the prior.
StepFit fit_step_law(StepPath path, const std::vector<StepRow>& rows, const StepPrior& prior);

}  // namespace syncline::cost
