#include "core/calibrate/nccl_choice.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace syncline {
namespace {

// us, by protocol LL, LL128, Simple.
using PerProtocol = std::array<double, 3>;
constexpr PerProtocol kTreeBase = {6.8, 14.0, 8.4};
constexpr PerProtocol kRingBase = {6.6, 14.0, 8.4};
constexpr PerProtocol kTreeNvlink = {.6, 1.25, 4.0};
constexpr PerProtocol kRingNvlink = {.6, 1.9, 3.4};
constexpr PerProtocol kTreeNet = {5.0, 8.5, 14.0};
constexpr PerProtocol kRingNet = {2.7, 4.0, 14.0};

// Bounds in GB/s for 2 nodes and more. LL's go by the processors alone between nodes; the
// others differ little between GPU generations where networks are the limit: Hopper's are used.
constexpr std::array<std::array<double, 2>, 2> kMostLL = {{{39, 20.4}, {22.5, 19}}};
constexpr double kMostRingLL128 = 36.7;
constexpr std::array<double, 2> kMostTreeLL128 = {36.7, 29};
constexpr std::array<double, 2> kMostTree = {41.4, 36};

// What a tree loses on payloads of 64 B to 256 MiB, by powers of two.
constexpr std::array<std::array<double, 23>, 3> kTreeFactor = {{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

int floor_log2(double value) { return std::ilogb(value); }

std::size_t index(NcclProtocol protocol) { return static_cast<std::size_t>(protocol); }

}  // namespace

std::string to_string(NcclPath path) {
  constexpr std::array<const char*, 3> kNames = {"LL", "LL128", "Simple"};
  return std::string(path.tree ? "tree " : "ring ") + kNames[index(path.protocol)];
}

std::vector<NcclPath> all_nccl_paths() {
  std::vector<NcclPath> paths;
  for (const bool tree : {false, true}) {
    for (const auto protocol : {NcclProtocol::kLL, NcclProtocol::kLL128, NcclProtocol::kSimple}) {
      paths.push_back({tree, protocol});
    }
  }
  return paths;
}

RingSteps ring_steps(CollectiveKind kind, int nodes, int gpus_per_node) {
  const double times = kind == CollectiveKind::kAllReduce ? 2 : 1;
  const double ranks = static_cast<double>(nodes) * gpus_per_node;
  return {times * (ranks - 1), times * (nodes - 1)};
}

Seconds nccl_base_latency(NcclPath path) {
  return (path.tree ? kTreeBase : kRingBase)[index(path.protocol)] * kMicrosecond;
}

Seconds nccl_step_latency(NcclPath path, bool between_nodes) {
  const PerProtocol& list = between_nodes ? (path.tree ? kTreeNet : kRingNet)
                                          : (path.tree ? kTreeNvlink : kRingNvlink);
  return list[index(path.protocol)] * kMicrosecond;
}

NcclChoice::NcclChoice(const NcclGraph& graph, CollectiveKind kind, int nodes, int gpus_per_node) {
  const double ranks = static_cast<double>(nodes) * gpus_per_node;
  assert(ranks > 1 && "a collective needs two ranks");
  const RingSteps steps = ring_steps(kind, nodes, gpus_per_node);
  const std::size_t scale = nodes <= 2 ? 0 : 1;
  const double most_ll = kMostLL[graph.amd ? 1 : 0][scale];
  const double channels = graph.channels;
  slow_start_ = kind == CollectiveKind::kAllReduce && nodes > 1;
  ranks_channels_ = ranks * 2 * channels;
  for (const bool tree : {true, false}) {
    if (tree && (kind != CollectiveKind::kAllReduce || nodes == 1)) continue;
    for (const auto protocol : {NcclProtocol::kLL, NcclProtocol::kLL128, NcclProtocol::kSimple}) {
      if (protocol == NcclProtocol::kLL128 && !graph.ll128) continue;
      const std::size_t p = index(protocol);
      const double intra_rate = tree ? graph.tree_intra : graph.ring_intra;
      const double inter_rate = tree ? graph.tree_inter : graph.ring_inter;
      double rate = (nodes <= 2 ? intra_rate : inter_rate) * channels / kGigabytePerSecond;
      double latency = 0;
      if (tree) {
        rate = std::min(.92 * rate, channels * kMostTree[scale]);
        if (protocol == NcclProtocol::kLL) rate = std::min(rate / 3.8, most_ll);
        if (protocol == NcclProtocol::kLL128) {
          rate = std::min(rate * 120 / 128, channels * kMostTreeLL128[scale]);
        }
        if (graph.plain_tree) rate *= .85;
        rate *= .5;
        const double inter = kTreeNet[p];
        latency = kTreeBase[p] +
                  2 * ((gpus_per_node - 1) * kTreeNvlink[p] + floor_log2(nodes) * inter);
      } else {
        if (protocol == NcclProtocol::kLL) rate = std::min(most_ll, .5 * rate);
        if (protocol == NcclProtocol::kLL128) {
          rate = std::min(.92 * rate, channels * kMostRingLL128);
        }
        rate *= ranks / steps.all;
        const double overhead = (graph.amd ? 2.0 : 1.0) * (p == 2 ? 3 : 1);
        const double intra = nodes > 1 ? std::max(kRingNvlink[p], overhead) : kRingNvlink[p];
        const double inter = gpus_per_node == 1 ? kTreeNet[p] : kRingNet[p];
        latency = kRingBase[p] + (steps.all - steps.between_nodes) * intra +
                  steps.between_nodes * inter;
      }
      offers_.push_back({{tree, protocol}, latency, rate});
    }
  }
}

NcclPath NcclChoice::operator()(double bytes) const {
  NcclPath best;
  double least = std::numeric_limits<double>::infinity();
  for (const Offer& offer : offers_) {
    double rate = offer.bandwidth;
    double latency = offer.latency;
    constexpr double kFirst = 64;
    if (offer.path.tree && bytes >= kFirst) {
      const auto power = static_cast<std::size_t>(floor_log2(bytes / kFirst));
      const auto& factors = kTreeFactor[index(offer.path.protocol)];
      if (power < factors.size()) rate *= factors[power];
    }
    constexpr double kSlowFrom = 64;  // bytes a channel and rank
    constexpr double kSlow = 1.4;     // GPUs since Ampere
    if (!offer.path.tree && offer.path.protocol == NcclProtocol::kSimple && slow_start_ &&
        bytes / ranks_channels_ >= kSlowFrom) {
      latency *= kSlow;
    }
    const double time = latency + bytes / (rate * 1e3);
    if (time < least) {
      least = time;
      best = offer.path;
    }
  }
  return best;
}

}  // namespace syncline
