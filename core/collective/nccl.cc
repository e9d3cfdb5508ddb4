#include "core/collective/nccl.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <initializer_list>
#include <limits>
#include <span>
#include <utility>

namespace syncline {
namespace {

// Speeds of a channel that NCCL's search tries, in GB/s (src/graph/search.cc), by generation.
constexpr double kIntra70[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kInter70[] = {48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                               7,  6,  5,  4,  3,  2.4, 1.2, .24, .12};
constexpr double kIntra90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double kInter90[] = {48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                               15, 12, 6,  3,  2.4, 1.2, .24, .12};
// For Blackwell the source has 90 to 18 inside a node; what lies between is taken from Hopper's.
constexpr double kIntra100[] = {90, 60, 50, 40, 30, 24, 20, 18};
constexpr double kInter100[] = {96,   48, 45.1, 42, 40, 30,  24,  22,  20,
                                17.5, 15, 12,   6,  3,  2.4, 1.2, .24, .12};

constexpr int kMostChannels = 16;  // found by a search; connecting them doubles it
constexpr BytesPerSecond kFastestPcie = 64 * kGigabytePerSecond;  // PCIe 5 x16
constexpr BytesPerSecond kSlowestRdma = 100 * kGigabitPerSecond;  // below it, sockets are assumed

// Compute capabilities by what a device's name contains; the longer name first.
constexpr std::pair<std::string_view, int> kCapabilities[] = {
    {"GB200", 100}, {"GB300", 103}, {"B200", 100}, {"B300", 103}, {"5090", 120},
    {"GH200", 90},  {"H100", 90},   {"H200", 90},  {"H800", 90},  {"H20", 90},
    {"L40", 89},    {"L4", 89},     {"4090", 89},  {"A6000", 86}, {"A100", 80},
    {"A800", 80},   {"A10", 86},    {"A40", 86},   {"3090", 86},  {"A30", 80},
    {"T4", 75},     {"2080", 75},   {"V100", 70},  {"P100", 60},  {"P40", 61},
};

int capability_of(const Cluster& cluster) {
  if (cluster.nccl.compute_capability > 0) return cluster.nccl.compute_capability;
  std::string name;
  for (const char c : cluster.device.name + " " + cluster.name) {
    name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  for (const auto& [word, capability] : kCapabilities) {
    if (name.find(word) != std::string::npos) return capability;
  }
  return 80;
}

std::span<const double> speeds(int capability, bool across) {
  if (capability >= 100) return across ? std::span<const double>(kInter100) : kIntra100;
  if (capability >= 90) return across ? std::span<const double>(kInter90) : kIntra90;
  return across ? std::span<const double>(kInter70) : kIntra70;
}

// The largest speed on the list that the link can carry; the link's own where all are larger.
BytesPerSecond listed(std::span<const double> list, BytesPerSecond link) {
  for (const double speed : list) {
    // A link of exactly that speed has it, rounding aside.
    if (speed * kGigabytePerSecond <= link * (1 + 1e-9)) return speed * kGigabytePerSecond;
  }
  return link;
}

// How a group lies on the nodes.
struct Shape {
  int nodes = 1;
  int each = 1;     // ranks of one group on a node, rounded up
  int sharing = 1;  // groups that go out through one node's NICs
};

Shape shape_of(const Cluster& cluster, const Groups& groups) {
  const int gpus = cluster.gpus_per_node;
  Shape shape;
  if (groups.member_step >= gpus) {
    shape.nodes = groups.size;
  } else {
    shape.nodes = groups.rank(0, groups.size - 1) / gpus - groups.rank(0, 0) / gpus + 1;
  }
  shape.each = (groups.size + shape.nodes - 1) / shape.nodes;
  if (shape.nodes > 1) shape.sharing = std::clamp(gpus / shape.each, 1, std::max(1, groups.count));
  return shape;
}

const Tier* intra_tier(const Cluster& cluster) {
  return cluster.gpus_per_node > 1 ? &cluster.tiers.front() : nullptr;
}

// What one node can send to the others: the narrowest of the tiers above it.
BytesPerSecond node_bandwidth(const Cluster& cluster) {
  BytesPerSecond least = std::numeric_limits<double>::infinity();
  int below = 1;
  for (const Tier& tier : cluster.tiers) {
    if (tier.span > cluster.gpus_per_node) {
      least = std::min(least, tier.bandwidth * cluster.gpus_per_node / below);
    }
    below = tier.span;
  }
  return least;
}

const Tier& inter_tier(const Cluster& cluster) {
  return cluster.tiers[cluster.gpus_per_node > 1 ? 1 : 0];
}

// All groups of one shape have the same choice at hand; `shared` counts those that share the NICs.
NcclTopology topology_for(const Cluster& cluster, const Groups& groups, bool shared) {
  const NcclHints& hints = cluster.nccl;
  const Shape shape = shape_of(cluster, groups);
  const Tier* inside = shape.each > 1 ? intra_tier(cluster) : nullptr;
  NcclTopology t;
  t.nodes = shape.nodes;
  t.ranks = groups.size;
  t.cpu = hints.cpu;
  t.least_capability = t.most_capability = capability_of(cluster);
  const bool nvlink = inside != nullptr && hints.nvlink.value_or(inside->bandwidth > kFastestPcie);
  // A switch joins the GPUs of a node from eight on, since Ampere.
  t.nvswitch =
      nvlink && hints.nvswitch.value_or(cluster.gpus_per_node >= 8 && t.least_capability >= 80);

  NcclGraph graph;
  BytesPerSecond total = inside != nullptr ? inside->bandwidth : 0;
  BytesPerSecond link = total;
  bool rdma = true;
  if (shape.nodes > 1) {
    const BytesPerSecond nic = inter_tier(cluster).bandwidth / inter_tier(cluster).nics;
    rdma = hints.gpu_direct.value_or(nic >= kSlowestRdma);
    // One GPU has one NIC near it; a ring through the node goes out by as many as it can feed.
    const BytesPerSecond out =
        inside != nullptr ? node_bandwidth(cluster) : std::min(nic, node_bandwidth(cluster));
    total = inside != nullptr ? std::min(out, inside->bandwidth) : out;
    link = std::min(nic, total);
  }
  const auto list = speeds(t.least_capability, shape.nodes > 1);
  graph.intra = graph.inter = listed(list, link);
  graph.channels = std::clamp(static_cast<int>(total * (1 + 1e-9) / graph.inter), 1, kMostChannels);
  // Fast channels are cut in two.
  const double intra = graph.intra / kGigabytePerSecond;
  if (intra >= 25 && !(t.least_capability > 80 && intra < 50 && graph.channels > 4) &&
      2 * graph.channels <= kMostChannels) {
    graph.channels *= 2;
    graph.intra /= 2;
    graph.inter /= 2;
  }
  if (hints.channels > 0) graph.channels = hints.channels;
  if (hints.channel_intra > 0) graph.intra = hints.channel_intra;
  if (hints.channel_inter > 0) graph.inter = hints.channel_inter;

  graph.path_intra = inside == nullptr ? NcclPath::kLoc : nvlink ? NcclPath::kNvl : NcclPath::kPhb;
  graph.path_inter = rdma ? NcclPath::kPxb : NcclPath::kPhb;
  graph.pattern =
      shape.each > 1 && hints.balanced_tree ? NcclPattern::kBalancedTree : NcclPattern::kTree;
  t.channels = std::min(64, 2 * graph.channels);
  if (t.least_capability >= 90 && shape.nodes > 1 && graph.intra > 45 * kGigabytePerSecond &&
      graph.channels < 16) {
    t.channels = std::min(64, 2 * t.channels);
  }
  t.ring = t.tree = graph;
  if (t.nvswitch) {
    t.nvls = graph;
    t.nvls.channels = std::max(graph.channels, std::min(shape.each, kMostChannels));
    if (shape.nodes == 1) {
      // Each GPU heads a channel; its link carries what the others add and what it hands out.
      t.nvls.channels = std::min(shape.each, kMostChannels);
      t.nvls.intra = t.nvls.inter =
          listed(speeds(t.least_capability, false), inside->bandwidth / (2 * t.nvls.channels));
    }
  }
  if (shared && shape.sharing > 1) {
    const BytesPerSecond wanted = graph.inter * graph.channels;
    const double left = std::min(1.0, node_bandwidth(cluster) / shape.sharing / wanted);
    for (NcclGraph* each : {&t.ring, &t.tree, &t.nvls}) {
      each->intra *= left;
      each->inter *= left;
    }
  }
  return t;
}

const Algorithm* nearest(NcclAlgorithm algorithm, CollectiveKind kind, int ranks) {
  const bool tree = algorithm == NcclAlgorithm::kTree || algorithm == NcclAlgorithm::kNvlsTree;
  const std::string_view name = tree                               ? "double_binary_tree"
                                : algorithm == NcclAlgorithm::kPat ? "halving_doubling"
                                                                   : "ring";
  for (const std::string_view each : {name, std::string_view("ring")}) {
    const Algorithm* row = find_algorithm(each);
    if (row->fits(kind, ranks)) return row;
  }
  return find_algorithm("double_binary_tree");  // a chain too long for the ring's file
}

}  // namespace

NcclTopology nccl_topology(const Cluster& cluster, const Groups& groups) {
  assert(groups.size > 1 && "a group of one has no topology");
  return topology_for(cluster, groups, false);
}

std::string algorithm_choices() { return algorithm_names() + ", " + std::string(kNcclName); }

bool choice_fits(std::string_view name, CollectiveKind kind, int ranks) {
  return name == kNcclName || find_algorithm(name)->fits(kind, ranks);
}

void choose_algorithm(Collective& collective, std::string_view name, const Cluster& cluster) {
  if (name != kNcclName) {
    collective.algorithm = find_algorithm(name);
    return;
  }
  collective.algorithm = find_algorithm("ring");
  if (collective.groups.size < 2) return;
  const NcclTopology topology = nccl_topology(cluster, collective.groups);
  const NcclTable table = nccl_table(topology, collective.kind);
  const auto bytes = static_cast<double>(collective.bytes());
  collective.nccl = nccl_choice(topology, table, collective.kind, bytes).pick;
  collective.algorithm =
      nearest(collective.nccl->algorithm, collective.kind, collective.groups.size);
}

std::optional<Seconds> nccl_law(const Cluster& cluster, const Collective& collective) {
  if (!collective.nccl || collective.groups.size < 2) return std::nullopt;
  const NcclTopology topology = topology_for(cluster, collective.groups, true);
  const NcclTable table = nccl_table(topology, collective.kind);
  return nccl_time(topology, table, collective.kind, *collective.nccl,
                   static_cast<double>(collective.bytes()));
}

}  // namespace syncline
