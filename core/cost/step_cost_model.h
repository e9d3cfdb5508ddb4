// Cost of one algorithm and protocol of NCCL between nodes, for every count of nodes and GPUs at
// once: four parameters, found from measured rows, with NCCL's own constants as the prior.
// Bandwidth is a node's in one direction. The formulas are in the source.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/collective/nccl_model.h"
#include "core/cost/measured_table.h"

namespace syncline::cost {

// NCCL's algorithm and protocol for a payload between nodes, as far as the calibrated cost models
// distinguish them: ring and tree, with the protocols LL, LL128 and Simple. NCCL chooses by its own
// constants (core/collective/nccl_model.h) on every network, right or wrong for it; the cost of the
// choice is calibrated (StepCostModel).

// Inputs of the choice that a log of times does not show; the fit searches for them (scale_fit.h).
// They replace the result of NCCL's topology search; rates are those of one channel.
struct GraphGuess {
  bool amd = false;  // processors of AMD; NCCL's limit of LL between nodes depends on them
  int channels = 2;
  BytesPerSecond ring_intra = 20e9;  // up to two nodes NCCL uses the rate inside a node
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

// Returns "ring LL128", "tree Simple", ...
std::string to_string(StepPath path);
std::vector<StepPath> all_step_paths();

// True if all ranks send and receive alike, so that a ring carries it: all-reduce, all-gather and
// reduce-scatter.
bool ring_like(collective::CollectiveKind kind);

// Returns the steps of a ring of N ranks: 2 (N - 1) for all-reduce, N - 1 for the other two. With
// one GPU per node, they are the steps between nodes on the slowest way around.
double ring_steps(collective::CollectiveKind kind, int nodes, int gpus_per_node = 1);

// Returns the bytes that a rank sends in a ring / the payload as nccl-tests prints it.
double bus_factor(collective::CollectiveKind kind, int ranks);

// Returns NCCL's latency constants, the prior of the cost models: per collective, and per step of a
// ring or hop of a tree.
Seconds nccl_base_latency(StepPath path);
Seconds nccl_step_latency(StepPath path, bool between_nodes);

// NCCL's choice of a path by payload. `bytes` counts as nccl-tests prints it: the payload of an
// all-reduce, all shards together for the other two. For a forced algorithm NCCL chooses only the
// protocol; trees are only for all-reduce. Requires one of these kinds and at least two ranks.
class PathChoice {
 public:
  PathChoice(const GraphGuess& guess, collective::CollectiveKind kind, int nodes, int gpus_per_node,
             ForcedAlgorithm forced = ForcedAlgorithm::kNone);
  StepPath operator()(double bytes) const;
  // Returns the probability of each path by the uncertain guess of the graph: if NCCL's own times
  // of two paths are close, a slightly different graph has the other. They sum to one.
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
  double intra_share = 0;  // rings: cost of a step inside the node / of one between nodes
  Seconds fill = 0;        // trees: a pipeline's filling, per hop, for 1 MiB
  double exponent = 1;     // rings: p
  Seconds chain = 0;       // trees: of a step inside the node, not fitted
};

// Returns seconds. `share` scales the bandwidth, for other GPUs per node than the cost model's own.
Seconds step_time(const StepCostModel& cost_model, collective::CollectiveKind kind, double bytes,
                  int nodes, int gpus_per_node, double share);

// Prior belief: NCCL's latencies times `latency_scale` (and the path's usual factor), within a
// factor e^`latency_spread`, and a bandwidth near `bandwidth`.
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
  double share = 1;  // of the rate, by its GPUs per node
  Seconds time = 0;
  ForcedAlgorithm forced = ForcedAlgorithm::kNone;
  std::size_t table = 0;  // index of its table
};

// Returns the fit by least squares of the relative errors, damped for outliers, and of the
// distances to the prior; and its cost, minus the log-likelihood with the prior, up to a constant.
std::pair<StepCostModel, double> fit_step_cost_model(StepPath path,
                                                     const std::vector<PathRow>& rows,
                                                     const StepPrior& prior);

}  // namespace syncline::cost
