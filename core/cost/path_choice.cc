#include "core/cost/path_choice.h"

#include <array>
#include <cassert>
#include <cmath>

namespace syncline::cost {
namespace {

// us, by protocol LL, LL128, Simple, as in NCCL 2.28.9 (src/graph/tuning.cc).
using PerProtocol = std::array<double, 3>;
constexpr PerProtocol kTreeBase = {6.8, 14.0, 8.4};
constexpr PerProtocol kRingBase = {6.6, 14.0, 8.4};
constexpr PerProtocol kTreeNvlink = {.6, 1.25, 4.0};
constexpr PerProtocol kRingNvlink = {.6, 1.9, 3.4};
constexpr PerProtocol kTreeNet = {5.0, 8.5, 14.0};
constexpr PerProtocol kRingNet = {2.7, 4.0, 14.0};

std::size_t index(collective::NcclProtocol protocol) { return static_cast<std::size_t>(protocol); }

collective::NcclTopology topology_of(const GraphGuess& guess, int nodes, int gpus_per_node) {
  collective::NcclTopology topology;
  topology.nodes = nodes;
  topology.ranks = nodes * gpus_per_node;
  // Between nodes the bounds of the GPU generations differ little: Hopper's are used.
  topology.least_capability = topology.most_capability = 90;
  topology.cpu = guess.amd ? NcclHints::Cpu::kAmd : NcclHints::Cpu::kIntel;
  topology.ring = {guess.channels,
                   guess.ring_intra,
                   guess.ring_inter,
                   collective::NcclPath::kNvl,
                   guess.ll128 ? collective::NcclPath::kPix : collective::NcclPath::kPhb,
                   collective::NcclPattern::kBalancedTree,
                   true,
                   0};
  topology.tree = topology.ring;
  topology.tree.intra = guess.tree_intra;
  topology.tree.inter = guess.tree_inter;
  if (guess.plain_tree) topology.tree.pattern = collective::NcclPattern::kTree;
  topology.channels = 2 * guess.channels;
  return topology;
}

}  // namespace

std::string to_string(StepPath path) {
  constexpr std::array<const char*, 3> kNames = {"LL", "LL128", "Simple"};
  return std::string(path.tree ? "tree " : "ring ") + kNames[index(path.protocol)];
}

std::vector<StepPath> all_step_paths() {
  std::vector<StepPath> paths;
  for (const bool tree : {false, true}) {
    for (const auto protocol : {collective::NcclProtocol::kLl, collective::NcclProtocol::kLl128,
                                collective::NcclProtocol::kSimple}) {
      paths.push_back({tree, protocol});
    }
  }
  return paths;
}

RingSteps ring_steps(collective::CollectiveKind kind, int nodes, int gpus_per_node) {
  const double times = kind == collective::CollectiveKind::kAllReduce ? 2 : 1;
  const double ranks = static_cast<double>(nodes) * gpus_per_node;
  return {times * (ranks - 1), times * (nodes - 1)};
}

Seconds nccl_base_latency(StepPath path) {
  return (path.tree ? kTreeBase : kRingBase)[index(path.protocol)] * kMicrosecond;
}

Seconds nccl_step_latency(StepPath path, bool between_nodes) {
  const PerProtocol& list =
      between_nodes ? (path.tree ? kTreeNet : kRingNet) : (path.tree ? kTreeNvlink : kRingNvlink);
  return list[index(path.protocol)] * kMicrosecond;
}

PathChoice::PathChoice(const GraphGuess& guess, collective::CollectiveKind kind, int nodes,
                       int gpus_per_node, ForcedAlgorithm forced)
    : kind_(kind),
      topology_(topology_of(guess, nodes, gpus_per_node)),
      table_(collective::nccl_table(topology_, kind)) {
  // Measured tables of PAT are too few to tell it from the ring.
  table_[static_cast<std::size_t>(collective::NcclAlgorithm::kPat)] = {};
  assert((forced != ForcedAlgorithm::kTree || kind == collective::CollectiveKind::kAllReduce) &&
         "NCCL has trees for all-reduce only");
  if (forced == ForcedAlgorithm::kRing) {
    table_[static_cast<std::size_t>(collective::NcclAlgorithm::kTree)] = {};
  }
  if (forced == ForcedAlgorithm::kTree) {
    table_[static_cast<std::size_t>(collective::NcclAlgorithm::kRing)] = {};
  }
}

StepPath PathChoice::operator()(double bytes) const {
  const collective::NcclPick pick = collective::nccl_choice(topology_, table_, kind_, bytes).pick;
  return {pick.algorithm == collective::NcclAlgorithm::kTree, pick.protocol};
}

std::vector<PathShare> PathChoice::shares(double bytes) const {
  constexpr double kSharp = 10;  // a tenth more time makes a path less likely by e
  constexpr double kLeastShare = 0.01;
  const Seconds least = collective::nccl_choice(topology_, table_, kind_, bytes).time;
  std::vector<PathShare> list;
  double sum = 0;
  for (const StepPath path : all_step_paths()) {
    const collective::NcclPick pick{
        path.tree ? collective::NcclAlgorithm::kTree : collective::NcclAlgorithm::kRing,
        path.protocol};
    const auto time = collective::nccl_time(topology_, table_, kind_, pick, bytes);
    if (!time) continue;
    const double share = std::pow(least / *time, kSharp);
    if (share < kLeastShare) continue;
    list.push_back({path, share});
    sum += share;
  }
  for (PathShare& one : list) one.share /= sum;
  return list;
}

}  // namespace syncline::cost
