// For each collective, algorithm and protocol NCCL computes a latency and an algorithm bandwidth
// from constants and from the result of its topology search. A payload of n bytes then costs
// latency + n / bandwidth, with two corrections, and the minimum wins (src/graph/tuning.cc,
// ncclTopoTuneModel and ncclTopoGetAlgoTime; src/enqueue.cc, topoGetAlgoInfo). The payload of
// all-gather and reduce-scatter counts all ranks' shards together, as here everywhere.
//
// The choice is NCCL's, even with wrong constants. The time is NCCL's estimate: on fast networks
// within a few ten percent of measurements, on TCP several times too short for small payloads. With
// a calibration, take the choice from here and the time from there.
//
// Left out: fp8 (penalised on rings of more than 8), CollNet's all-gather and reduce-scatter.
#include "core/collective/nccl_model.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>

namespace syncline::collective {
namespace {

using Choice = NcclAlgorithm;
using Protocol = NcclProtocol;
using Kind = CollectiveKind;
using ByProtocol = std::array<double, kNcclProtocols>;  // LL, LL128, Simple
using ByAlgorithm = std::array<ByProtocol, kNcclAlgorithms>;

// ---------------------------------------------------------------------------------------------
// Constants of src/graph/tuning.cc, in its units: microseconds and GB/s.

// Latency per collective. Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT.
constexpr ByAlgorithm kBaseLatency = {{{6.8, 14.0, 8.4},
                                       {6.6, 14.0, 8.4},
                                       {0, 0, 0},
                                       {0, 0, 0},
                                       {0, 0, 0},
                                       {0, 0, 0},
                                       {8.0, 8.0, 8.0}}};

enum Wire { kNvLink, kPci, kNet };
// Latency per step, by the wire that it crosses.
constexpr std::array<ByAlgorithm, 3> kStepLatency = {{
    {{{0.6, 1.25, 4.0},
      {0.6, 1.9, 3.4},
      {0, 0, 3.7},
      {0, 0, 2.8},
      {0, 0, 25},
      {0, 0, 25},
      {0, 0, 4.0}}},
    {{{1.0, 1.9, 4.0},
      {1.0, 2.5, 5.7},
      {0, 0, 3.7},
      {0, 0, 2.8},
      {0, 0, 0},
      {0, 0, 0},
      {0, 0, 4.0}}},
    {{{5.0, 8.5, 14},
      {2.7, 4.0, 14.0},
      {0, 0, 31},
      {0, 0, 30},
      {0, 0, 18},
      {0, 0, 20.9},
      {0, 0, 14}}},
}};

// Caps by generation (Volta, Ampere, Hopper, Blackwell) and number of nodes (1, 2, more).
using Caps = std::array<std::array<double, 3>, 4>;
constexpr Caps kMaxLl = {{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
constexpr Caps kRingLl128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}}};
constexpr Caps kTreeLl128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}};
constexpr Caps kTreeSimple = {
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
constexpr Caps kNvlsTree = {{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}}};
constexpr std::array<double, 4> kNvlsEfficiency = {0, 0, 0.85, 0.74};

// Share of its bandwidth that a tree all-reduce reaches from 64 B on, by doubling size.
constexpr std::size_t kCorrected = 23;
constexpr std::array<std::array<double, kCorrected>, kNcclProtocols> kTreeCorrection = {{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

// ---------------------------------------------------------------------------------------------

int floor_log2(std::uint64_t value) { return static_cast<int>(std::bit_width(value)) - 1; }

std::size_t generation(const NcclTopology& t) {
  return t.least_capability >= 100  ? 3
         : t.least_capability >= 90 ? 2
         : t.least_capability >= 80 ? 1
                                    : 0;
}

std::size_t node_column(const NcclTopology& t) {
  return t.nodes <= 2 ? static_cast<std::size_t>(t.nodes - 1) : 2;
}

double most_ll(const NcclTopology& t) {
  // Over several nodes the CPU decides, not the GPU.
  const std::size_t row = t.nodes == 1 ? generation(t) : t.cpu == NcclHints::Cpu::kAmd ? 1 : 0;
  return kMaxLl[row][node_column(t)];
}

// Returns the overhead of posting to the NIC.
double net_overhead(const NcclTopology& t, Protocol protocol) {
  const double once = t.cpu == NcclHints::Cpu::kAmd ? 2.0 : 1.0;
  return protocol == Protocol::kSimple ? 3 * once : once;
}

const NcclGraph& graph_of(const NcclTopology& t, Choice algorithm) {
  switch (algorithm) {
    case Choice::kRing:
      return t.ring;
    case Choice::kCollNetDirect:
      return t.collnet_direct;
    case Choice::kCollNetChain:
      return t.collnet_chain;
    case Choice::kNvls:
    case Choice::kNvlsTree:
      return t.nvls;
    default:
      return t.tree;
  }
}

bool is_nvls(Choice algorithm) {
  return algorithm == Choice::kNvls || algorithm == Choice::kNvlsTree;
}

bool is_collnet(Choice algorithm) {
  return algorithm == Choice::kCollNetDirect || algorithm == Choice::kCollNetChain;
}

bool runs(Choice algorithm, Kind kind) {
  if (algorithm == Choice::kRing) return true;
  if (kind == Kind::kAllReduce) return algorithm != Choice::kPat;
  if (kind != Kind::kAllGather && kind != Kind::kReduceScatter) return false;
  return algorithm == Choice::kPat || algorithm == Choice::kNvls;
}

bool ll128_allowed(const NcclTopology& t, const NcclGraph& graph) {
  const NcclPath farthest = t.least_capability >= 90 ? NcclPath::kPxn : NcclPath::kPxb;
  return t.least_capability == t.most_capability && t.least_capability >= 70 &&
         graph.path_intra <= NcclPath::kNvb && graph.path_inter <= farthest;
}

bool offered(const NcclTopology& t, Choice algorithm, Protocol protocol, Kind kind) {
  const NcclGraph& graph = graph_of(t, algorithm);
  if (!runs(algorithm, kind) || graph.channels == 0) return false;
  const bool tree_or_ring = algorithm == Choice::kTree || algorithm == Choice::kRing;
  if (!tree_or_ring && protocol != Protocol::kSimple) return false;
  if (protocol == Protocol::kLl128 && !ll128_allowed(t, graph)) return false;
  if (is_collnet(algorithm)) {
    return t.collnet && (algorithm == Choice::kCollNetChain || t.nvswitch);
  }
  if (is_nvls(algorithm)) {
    const bool hardware =
        t.nvswitch && t.gpus_per_node() >= 2 && t.least_capability >= 90 && graph.channels >= 2;
    if (!hardware) return false;
    if (algorithm == Choice::kNvlsTree) return t.nodes > 1;
    return t.nodes == 1 || (t.collnet && kind == Kind::kAllReduce);
  }
  if (algorithm == Choice::kPat) return t.gpus_per_node() == 1;
  return true;
}

// Returns GB/s of payload: first the rate of one channel, then the bus of all channels. Each
// algorithm and protocol uses the bus to its own degree (ncclTopoTuneModel's corrections). Last the
// bytes on the bus per byte of payload.
double bandwidth(const NcclTopology& t, Choice algorithm, Protocol protocol, Kind kind) {
  const NcclGraph& graph = graph_of(t, algorithm);
  const auto row = generation(t);
  const auto column = node_column(t);
  const double channels = graph.channels;
  const double ranks = t.ranks;
  const double local = t.gpus_per_node();
  const double intra = graph.intra / kGigabytePerSecond;
  const double inter = graph.inter / kGigabytePerSecond;
  const bool all_reduce = kind == Kind::kAllReduce;

  double channel = t.nodes <= 2 || is_collnet(algorithm) ? intra : inter;
  if (is_nvls(algorithm)) {
    const bool tree = algorithm == Choice::kNvlsTree;
    const double inside = intra * kNvlsEfficiency[row] * (channels - 1) / channels *
                          (all_reduce ? 2 : (local - 1) / local);
    channel = std::min(inside, inter * (t.nodes <= 2 && tree ? 2 : 1));
    if (tree) channel = std::min(channel, kNvlsTree[row][column]);
  }
  double bus = channels * channel;
  if (algorithm == Choice::kRing && protocol == Protocol::kLl) {
    bus = std::min(most_ll(t), 0.5 * bus);
  }
  if (algorithm == Choice::kRing && protocol == Protocol::kLl128) {
    bus = std::min(0.92 * bus, channels * kRingLl128[row][column]);
  }
  if (algorithm == Choice::kTree) {
    bus = std::min(0.92 * bus, channels * kTreeSimple[row][column]);
    if (protocol == Protocol::kLl) bus = std::min(bus / 3.8, most_ll(t));
    if (protocol == Protocol::kLl128) {
      bus = std::min(bus * (t.nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                     channels * kTreeLl128[row][column]);
    }
    if (graph.pattern == NcclPattern::kTree) bus *= 0.85;
  }
  if (algorithm == Choice::kPat) bus *= 0.75;
  if (algorithm == Choice::kCollNetDirect) {
    double factor = local / channels;
    factor -= (factor - 1) / 2;
    bus /= factor;
    if (t.least_capability >= 90) bus *= 0.85;
  }

  // From bus to payload: 2 (n - 1) / n bytes per byte of a ring's all-reduce, and so on.
  const bool ringlike = algorithm == Choice::kRing || is_nvls(algorithm);
  const bool shards = kind == Kind::kAllGather || kind == Kind::kReduceScatter;
  if (shards && algorithm != Choice::kRing) return bus;
  if (!ringlike) return 0.5 * bus;
  const double steps = all_reduce ? 2 * (ranks - 1) : shards ? ranks - 1 : ranks;
  return bus * ranks / steps;
}

// Returns microseconds: a base per call, and the cost of the wire for each step on the way.
double latency(const NcclTopology& t, Choice algorithm, Protocol protocol, Kind kind) {
  const NcclGraph& graph = graph_of(t, algorithm);
  const auto a = static_cast<std::size_t>(algorithm);
  const auto p = static_cast<std::size_t>(protocol);
  constexpr auto kTreeRow = static_cast<std::size_t>(Choice::kTree);
  const Wire inside = graph.path_intra == NcclPath::kNvl ? kNvLink : kPci;
  const double ranks = t.ranks;
  const double nodes = t.nodes;
  const double hops = t.gpus_per_node() - 1;  // inside a node
  const double levels = floor_log2(static_cast<std::uint64_t>(t.nodes));
  const bool simple = protocol == Protocol::kSimple;
  const double nic = graph.inter_latency / kMicrosecond;
  const double intra = std::max(kStepLatency[inside][a][p], graph.intra_latency / kMicrosecond);
  // Simple flushes the NIC as well.
  const double inter =
      kStepLatency[kNet][t.gpus_per_node() == 1 ? kTreeRow : a][p] + (simple ? 2 * nic : nic);
  const double base = kBaseLatency[a][p];

  switch (algorithm) {
    case Choice::kRing: {
      if (kind == Kind::kBroadcast || kind == Kind::kReduce) {
        const Wire wire = t.nodes == 1 ? inside : kNet;
        // NCCL counts one step in all; slower links lengthen each hop inside a node.
        const double outside = nodes - 1;
        const double longer = (ranks - 1 - outside) * (intra - kStepLatency[inside][a][p]);
        if (graph.same_channels) return base + kStepLatency[wire][a][p] + longer;
        return base + ranks * kStepLatency[wire][simple ? kTreeRow : a][p];
      }
      const double ways = kind == Kind::kAllReduce ? 2 : 1;
      const double steps = ways * (ranks - 1);
      const double outside = t.nodes == 1 ? 0 : ways * (nodes - 1);
      const double step = std::max(intra, t.nodes > 1 ? net_overhead(t, protocol) : 0.0);
      return base + (steps - outside) * step + outside * inter;
    }
    case Choice::kTree:
      return base + 2 * (hops * intra + levels * inter);
    case Choice::kCollNetDirect:
      return base + 2 * (std::min(1.0, hops) * intra + hops * 0.4) + inter;
    case Choice::kCollNetChain:
      return base + 2 * hops * intra + inter;
    case Choice::kNvls:
      return intra + (t.nodes > 1 ? inter : 0);
    case Choice::kNvlsTree:
      return base + intra + 2 * levels * inter;
    case Choice::kPat:
      return base + levels * inter / 3.5 + 2.8 * ranks;
  }
  return 0;
}

}  // namespace

NcclTable nccl_table(const NcclTopology& topology, CollectiveKind kind) {
  assert(topology.ranks > 1 && "one rank has nothing to choose");
  NcclTable table{};
  for (std::size_t a = 0; a < kNcclAlgorithms; ++a) {
    for (std::size_t p = 0; p < kNcclProtocols; ++p) {
      const auto algorithm = static_cast<NcclAlgorithm>(a);
      const auto protocol = static_cast<NcclProtocol>(p);
      if (!offered(topology, algorithm, protocol, kind)) continue;
      table[a][p] = {latency(topology, algorithm, protocol, kind) * kMicrosecond,
                     bandwidth(topology, algorithm, protocol, kind) * kGigabytePerSecond};
    }
  }
  return table;
}

std::optional<Seconds> nccl_time(const NcclTopology& topology, const NcclTable& table,
                                 CollectiveKind kind, const NcclPick& pick, double bytes) {
  const auto p = static_cast<std::size_t>(pick.protocol);
  NcclCell cell = table[static_cast<std::size_t>(pick.algorithm)][p];
  if (cell.bandwidth <= 0) return std::nullopt;
  const bool all_reduce = kind == CollectiveKind::kAllReduce;
  if (pick.algorithm == NcclAlgorithm::kTree && all_reduce) {
    const int doublings = floor_log2(static_cast<std::uint64_t>(bytes) >> 6U);
    if (doublings >= 0 && doublings < static_cast<int>(kCorrected)) {
      cell.bandwidth *= kTreeCorrection[p][static_cast<std::size_t>(doublings)];
    }
  }
  if (pick.algorithm == NcclAlgorithm::kRing && pick.protocol == NcclProtocol::kSimple &&
      all_reduce && topology.nodes > 1 &&
      std::floor(bytes / (static_cast<double>(topology.channels) * topology.ranks)) >= 64) {
    cell.latency *= topology.least_capability < 80 ? 1.9 : 1.4;
  }
  return cell.latency + bytes / cell.bandwidth;
}

NcclChoice nccl_choice(const NcclTopology& topology, const NcclTable& table, CollectiveKind kind,
                       double bytes) {
  NcclChoice best;
  best.time = std::numeric_limits<double>::infinity();
  for (std::size_t a = 0; a < kNcclAlgorithms; ++a) {
    for (std::size_t p = 0; p < kNcclProtocols; ++p) {
      const NcclPick pick{static_cast<NcclAlgorithm>(a), static_cast<NcclProtocol>(p)};
      const auto time = nccl_time(topology, table, kind, pick, bytes);
      if (time && *time < best.time) best = {pick, *time};
    }
  }
  assert(std::isfinite(best.time) && "the ring is always offered");
  return best;
}

std::string_view to_string(NcclAlgorithm algorithm) {
  constexpr std::array<std::string_view, kNcclAlgorithms> kNames = {
      "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::string_view to_string(NcclProtocol protocol) {
  constexpr std::array<std::string_view, kNcclProtocols> kNames = {"LL", "LL128", "Simple"};
  return kNames[static_cast<std::size_t>(protocol)];
}

}  // namespace syncline::collective
