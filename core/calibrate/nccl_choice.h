// Which algorithm and protocol NCCL takes for a payload, as far as several nodes go: ring and tree
// with the protocols LL, LL128 and Simple, by the constants of NCCL 2.28.9 (src/graph/tuning.cc).
// NCCL chooses by these constants on every network, right or wrong for it; what the choice then
// costs is calibrated (step_law.h). The graph, which a log of times does not show, is searched for
// by the fit (scale_fit.h).
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "core/collective/schedule.h"
#include "core/units.h"

namespace syncline {

// What NCCL's search of the topology would have found: channels and bytes/s of one channel.
struct NcclGraph {
  bool amd = false;  // the processors, by which NCCL bounds LL between nodes
  int channels = 2;
  double ring_intra = 20e9;  // up to two nodes NCCL reckons with the rate inside a node
  double ring_inter = 20e9;
  double tree_intra = 20e9;
  double tree_inter = 20e9;
  bool plain_tree = false;  // the pattern TREE instead of a balanced one
  bool ll128 = false;       // offered on this path
  bool operator==(const NcclGraph&) const = default;
};

enum class NcclProtocol { kLL, kLL128, kSimple };

struct NcclPath {
  bool tree = false;
  NcclProtocol protocol = NcclProtocol::kSimple;
  auto operator<=>(const NcclPath&) const = default;
};

// "ring LL128", "tree Simple", ...
std::string to_string(NcclPath path);
std::vector<NcclPath> all_nccl_paths();

// The steps of a ring: 2 (N - 1) for all-reduce, N - 1 for all-gather and reduce-scatter, and how
// many of them, on the slowest way around, cross between nodes.
struct RingSteps {
  double all = 0;
  double between_nodes = 0;
};
RingSteps ring_steps(CollectiveKind kind, int nodes, int gpus_per_node);

// NCCL's latency constants: once per collective, and per step of a ring or hop of a tree.
Seconds nccl_base_latency(NcclPath path);
Seconds nccl_step_latency(NcclPath path, bool between_nodes);

// Requires an all-reduce, all-gather or reduce-scatter and at least two ranks. `bytes` counts as
// nccl-tests prints it: the payload of an all-reduce, all shards together for the other two.
class NcclChoice {
 public:
  NcclChoice(const NcclGraph& graph, CollectiveKind kind, int nodes, int gpus_per_node);
  NcclPath operator()(double bytes) const;

 private:
  struct Offer {
    NcclPath path;
    double latency = 0;    // us, as in NCCL's tables
    double bandwidth = 0;  // GB/s of payload
  };
  std::vector<Offer> offers_;
  bool slow_start_ = false;  // an all-reduce between nodes: its Simple ring starts slower
  double ranks_channels_ = 1;
};

}  // namespace syncline
