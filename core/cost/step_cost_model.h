// What one algorithm and protocol of NCCL costs between nodes, for every count of nodes and GPUs at
// once: four parameters, found from measured rows, with NCCL's own constants as the prior.
// Bandwidth is what a node sends and receives in one direction. The formulas stand in the source.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/collective/nccl_model.h"
#include "core/cost/measured_table.h"

namespace syncline::cost {

// Which algorithm and protocol NCCL takes for a payload between nodes, as far as the calibrated
// cost models tell them apart: ring and tree, with the protocols LL, LL128 and Simple. NCCL chooses
// by its own constants (core/collective/nccl_model.h) on every network, right or wrong for it; what
// the choice then costs is calibrated (StepCostModel).

// What decides the choice and a log of times does not show: the fit searches for it (scale_fit.h).
// It stands for all that NCCL's search of the topology found; rates are those of one channel.
struct GraphGuess {
  bool amd = false;  // the processors, by which NCCL bounds LL between nodes
  int channels = 2;
  BytesPerSecond ring_intra = 20e9;  // up to two nodes NCCL reckons with the rate inside a node
  BytesPerSecond ring_inter = 20e9;
  BytesPerSecond tree_intra = 20e9;
  BytesPerSecond tree_inter = 20e9;
  bool plain_tree = false;  // the pattern TREE instead of a balanced one
  bool ll128 = false;       // offered on this path
  bool operator==(const GraphGuess&) const = default;
};

struct StepPath {
  bool tree = false;
  collective::NcclProtocol protocol = collective::NcclProtocol::kSimple;
  bool operator==(const StepPath&) const = default;
  bool operator<(const StepPath& other) const {
    return tree != other.tree ? other.tree : protocol < other.protocol;
  }
};

// "ring LL128", "tree Simple", ...
std::string to_string(StepPath path);
std::vector<StepPath> all_step_paths();

// Returns whether all ranks give and get alike, so that a ring carries it: all-reduce, all-gather
// and reduce-scatter.
bool ring_like(collective::CollectiveKind kind);

// Returns the steps of a ring: 2 (N - 1) for all-reduce, N - 1 for the other two. On the slowest
// way around as many of them cross between nodes as a ring of one GPU a node has.
double ring_steps(collective::CollectiveKind kind, int nodes, int gpus_per_node = 1);

// What a rank sends in a ring, as a share of the payload as nccl-tests prints it.
double bus_factor(collective::CollectiveKind kind, int ranks);

// NCCL's latency constants, the prior of the cost models: once per collective, and per step of a
// ring or hop of a tree.
Seconds nccl_base_latency(StepPath path);
Seconds nccl_step_latency(StepPath path, bool between_nodes);

// Requires an all-reduce, all-gather or reduce-scatter and at least two ranks. `bytes` counts as
// nccl-tests prints it: the payload of an all-reduce, all shards together for the other two. Where
// the algorithm is forced NCCL chooses the protocol only; trees are for all-reduce alone.
class PathChoice {
 public:
  PathChoice(const GraphGuess& guess, collective::CollectiveKind kind, int nodes, int gpus_per_node,
             ForcedAlgorithm forced = ForcedAlgorithm::kNone);
  StepPath operator()(double bytes) const;
  // Returns how likely each path is, as far as the guess of the graph can be trusted: where NCCL's
  // own times of two paths are alike, a graph a little different has the other. They add up to one.
  std::vector<std::pair<StepPath, double>> shares(double bytes) const;

 private:
  collective::CollectiveKind kind_;
  collective::NcclTopology topology_;
  collective::NcclTable table_;
};

struct StepCostModel {
  StepPath path;
  Seconds base = 0;
  Seconds latency = 0;  // of a step between nodes, or of a hop
  BytesPerSecond bandwidth = 0;
  double intra_share = 0;  // rings: what a step inside the node costs, in steps between nodes
  Seconds fill = 0;        // trees: a pipeline's filling, per hop, of 1 MiB
  double exponent = 1;     // rings: p
  Seconds chain = 0;       // trees: of a step inside the node, not fitted
};

// Seconds. `share` scales the bandwidth: GPUs a node other than the cost model's own.
Seconds step_time(const StepCostModel& cost_model, collective::CollectiveKind kind, double bytes,
                  int nodes, int gpus_per_node, double share);

// What is believed before any row is seen: NCCL's latencies times `latency_scale` (and what is
// usual of the path), give or take a factor e^`latency_spread`, and a bandwidth near `bandwidth`.
struct StepPrior {
  double latency_scale = 1;
  double latency_spread = 1.5;
  BytesPerSecond bandwidth = 0;
  double inside_scale = 1;  // on NCCL's latencies inside a node
};
StepCostModel prior_cost_model(StepPath path, const StepPrior& prior);

// A measured row between nodes.
struct PathRow {
  collective::CollectiveKind kind = collective::CollectiveKind::kAllReduce;
  double bytes = 0;
  int nodes = 1;
  int gpus_per_node = 1;
  double share = 1;  // of the rate, that its GPUs a node have
  Seconds time = 0;
  ForcedAlgorithm forced = ForcedAlgorithm::kNone;
  std::size_t table = 0;  // whose row it is
};

// Least squares of the relative errors, damped for outliers, and of the distances to the prior;
// with its cost: minus the logarithm of the likelihood, prior included, up to a constant.
std::pair<StepCostModel, double> fit_step_cost_model(StepPath path,
                                                     const std::vector<PathRow>& rows,
                                                     const StepPrior& prior);

}  // namespace syncline::cost
