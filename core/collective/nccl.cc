// The choice is NCCL's own (nccl_model.h), over a topology guessed from the cluster: NCCL's search
// is assumed to find the largest speed on its list that a link can carry, and enough channels to
// fill the link. A ring has one speed, a tree inside nodes up to twice its speed across them, if
// the links there carry that: two nodes then send each other every byte once, and a port carries
// both directions. "nccl" in the cluster overrides each guess. The
// list is for choosing: the time is that of the given links (NcclCostModel). The transfers are
// those of the nearest algorithm known here, for the links that concurrent collectives share:
//
//   Ring, CollNet, NVLS  ring (a summing switch has no transfers of its own here)
//   Tree, NVLSTree       double_binary_tree, in rank order; NCCL has a chain inside nodes
//   PAT                  halving_doubling if it fits, else ring
#include "core/collective/nccl.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>

#include "core/algorithm.h"
#include "core/collective/footprint.h"
#include "core/collective/library.h"
#include "core/collective/wire_floor.h"

namespace syncline::collective {
namespace {

// Speeds of a channel that NCCL's search tries, in GB/s (src/graph/search.cc), by generation.
constexpr double kIntra70[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kInter70[] = {48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                               7,  6,  5,  4,  3,  2.4, 1.2, .24, .12};
constexpr double kIntra90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double kInter90[] = {48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                               15, 12, 6,  3,  2.4, 1.2, .24, .12};
// For Blackwell the source has 90 to 18 inside a node; the speeds between are Hopper's.
constexpr double kIntra100[] = {90, 60, 50, 40, 30, 24, 20, 18};
constexpr double kInter100[] = {96,   48, 45.1, 42, 40, 30,  24,  22,  20,
                                17.5, 15, 12,   6,  3,  2.4, 1.2, .24, .12};

constexpr double kMaxSpeedup = 5;  // minimum time: NCCL's time / this
constexpr int kMaxChannels = 16;   // found by a search; connecting them doubles it
constexpr BytesPerSecond kFastestPcie = 64 * kGigabytePerSecond;  // PCIe 5 x16
constexpr BytesPerSecond kSlowestRdma = 100 * kGigabitPerSecond;  // below it, sockets are assumed

int capability_of(const Cluster& cluster) {
  if (cluster.nccl.compute_capability > 0) return cluster.nccl.compute_capability;
  const int named = named_capability(cluster);
  return named > 0 ? named : 80;
}

std::span<const double> speeds(int capability, bool across) {
  if (capability >= 100) return across ? std::span<const double>(kInter100) : kIntra100;
  if (capability >= 90) return across ? std::span<const double>(kInter90) : kIntra90;
  return across ? std::span<const double>(kInter70) : kIntra70;
}

// Returns the largest speed on the list that the link can carry, or the link's own if all are
// larger.
BytesPerSecond listed(std::span<const double> list, BytesPerSecond link) {
  for (const double speed : list) {
    // A link of exactly that speed carries it, apart from rounding.
    if (speed * kGigabytePerSecond <= link * (1 + 1e-9)) return speed * kGigabytePerSecond;
  }
  return link;
}

// The position of a group on the nodes.
struct Shape {
  int nodes = 1;
  int each = 1;     // ranks of one group on a node, rounded up
  int sharing = 1;  // groups that use one node's NICs
};

// Returns the number of a group's nodes, its ranks on each, and the groups that share a node.
Shape shape_of(const Cluster& cluster, const Groups& given) {
  const Groups groups = ascending(given);
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

// Returns the cluster without tiers that no group crosses: their links are irrelevant.
Cluster within_reach(const Cluster& cluster, const Groups& given) {
  const Groups groups = ascending(given);
  const auto inside = [&](const Tier& tier) {
    for (int group = 0; group < groups.count; ++group) {
      const int first = groups.rank(group, 0);
      if (first / tier.span != groups.rank(group, groups.size - 1) / tier.span) return false;
    }
    return true;
  };
  Cluster reach = cluster;
  const auto outermost = std::ranges::find_if(reach.tiers, inside);
  if (outermost != reach.tiers.end()) reach.tiers.erase(std::next(outermost), reach.tiers.end());
  // A group inside one node still has a network beyond it.
  const std::size_t least = std::min(cluster.tiers.size(), std::size_t{2});
  for (std::size_t t = reach.tiers.size(); t < least; ++t) reach.tiers.push_back(cluster.tiers[t]);
  return reach;
}

const Tier* intra_tier(const Cluster& cluster) {
  return cluster.gpus_per_node > 1 ? &cluster.tiers.front() : nullptr;
}

// Returns the rate at which one node can send to others: the minimum of the tiers above it.
BytesPerSecond node_bandwidth(const Cluster& cluster) {
  BytesPerSecond least = std::numeric_limits<double>::infinity();
  int below = 1;
  for (const Tier& tier : cluster.tiers) {
    if (tier.span > cluster.gpus_per_node) {
      least = std::min(least, tier.narrower() * cluster.gpus_per_node / below);
    }
    below = tier.span;
  }
  return least;
}

// Returns the tier above the node's. Requires one if a node has several GPUs.
const Tier& inter_tier(const Cluster& cluster) {
  return cluster.tiers.at(cluster.gpus_per_node > 1 ? 1 : 0);
}

// Rates of the links of one group, as NCCL's search would see them.
struct Links {
  const Tier* inside =
      nullptr;               // between the group's GPUs of a node; nullptr if it has one GPU there
  BytesPerSecond total = 0;  // usable by all channels together
  BytesPerSecond each = 0;   // usable by one channel
  bool nvlink = false;
  bool rdma = true;
};

// Returns the links inside and between a group's nodes, as NCCL sees them.
Links links_of(const Cluster& cluster, const Shape& shape) {
  const NcclHints& hints = cluster.nccl;
  Links links;
  links.inside = shape.each > 1 ? intra_tier(cluster) : nullptr;
  if (links.inside != nullptr) {
    links.nvlink = hints.nvlink.value_or(links.inside->bandwidth > kFastestPcie);
    links.total = links.each = links.inside->bandwidth;
  }
  if (shape.nodes == 1) return links;
  const BytesPerSecond nic = inter_tier(cluster).narrower() / inter_tier(cluster).nics;
  links.rdma = hints.gpu_direct.value_or(nic >= kSlowestRdma);
  // One GPU has one NIC near it; a ring through the node uses all NICs that its links can feed.
  const BytesPerSecond out = node_bandwidth(cluster);
  links.total =
      links.inside != nullptr ? std::min(out, links.inside->bandwidth) : std::min(nic, out);
  links.each = std::min(nic, links.total);
  return links;
}

// Returns a tree's bandwidth for its chain inside a node. PCIe also carries the traffic between the
// NIC and the same GPU, NVLink does not.
BytesPerSecond carried_inside(const Links& links) {
  if (links.inside == nullptr) return std::numeric_limits<double>::infinity();
  constexpr double kBesideTheNic = 2.0 / 3;  // the chain has twice the speed of the NIC's traffic
  return links.inside->bandwidth * (links.nvlink ? 1 : kBesideTheNic);
}

constexpr double kMaxTreeRatio = 2;  // speed inside nodes / across them, of a tree

// Returns a tree's speed inside nodes: raised along the list while the links carry it.
BytesPerSecond raised(std::span<const double> list, BytesPerSecond across, BytesPerSecond carried) {
  BytesPerSecond speed = across;
  for (auto each = list.rbegin(); each != list.rend(); ++each) {
    const BytesPerSecond next = *each * kGigabytePerSecond;
    if (next <= speed * (1 + 1e-9)) continue;
    if (speed >= kMaxTreeRatio * across * (1 - 1e-9) || next > carried * (1 + 1e-9)) break;
    speed = next;
  }
  return speed;
}

// Returns a given rate, or the guess; a given rate that equals the printed guess counts as the
// guess.
BytesPerSecond given_or(BytesPerSecond given, BytesPerSecond guess) {
  constexpr double kPrinted = 1e-5;
  return given > 0 && std::fabs(given / guess - 1) > kPrinted ? given : guess;
}

struct Graphs {
  NcclGraph ring;
  NcclGraph tree;
};

// Returns the graphs that NCCL's search would find for rings and trees, with hints applied.
Graphs graphs_of(const NcclHints& hints, const Shape& shape, const Links& links, int capability) {
  // The search goes down its list of speeds to the first that a link carries, and adds channels
  // until they fill the links.
  const bool across = shape.nodes > 1;
  const auto list = speeds(capability, across);
  NcclGraph graph;
  graph.inter = listed(list, links.each);
  int channels =
      std::clamp(static_cast<int>(links.total * (1 + 1e-9) / graph.inter), 1, kMaxChannels);

  // Fast channels are cut in two (ncclTopoDupChannels), but above capability 80 not if more than
  // four are slower than 50 GB/s.
  const double speed = graph.inter / kGigabytePerSecond;
  if (speed >= 25 && !(capability > 80 && speed < 50 && channels > 4) &&
      2 * channels <= kMaxChannels) {
    channels *= 2;
    graph.inter /= 2;
  }

  graph.channels = hints.channels > 0 ? hints.channels : channels;
  BytesPerSecond inside = graph.inter;
  if (across) {
    graph.inter = given_or(hints.channel_inter, graph.inter);
    inside = raised(list, graph.inter, carried_inside(links) / graph.channels);
  }
  inside = given_or(hints.channel_intra, inside);
  graph.path_intra = links.inside == nullptr ? NcclPath::kLoc
                     : links.nvlink          ? NcclPath::kNvl
                                             : NcclPath::kPhb;
  graph.path_inter = links.rdma ? NcclPath::kPxb : NcclPath::kPhb;
  graph.pattern =
      shape.each > 1 && hints.balanced_tree ? NcclPattern::kBalancedTree : NcclPattern::kTree;
  Graphs graphs{graph, graph};
  graphs.tree.intra = inside;
  graphs.ring.intra = across ? std::min(inside, graph.inter) : inside;
  return graphs;
}

// Returns connected channels: double those of a search, and again on fast Hopper links.
int connected_channels(const NcclGraph& graph, const Shape& shape, int capability) {
  constexpr int kMaxConnected = 64;
  const int channels = std::min(kMaxConnected, 2 * static_cast<int>(graph.channels));
  const bool again = capability >= 90 && shape.nodes > 1 && graph.intra > 45 * kGigabytePerSecond &&
                     graph.channels < 16;
  return again ? std::min(kMaxConnected, 2 * channels) : channels;
}

// Returns the graph of a summing switch: each GPU heads a channel.
NcclGraph nvls_graph(const Cluster& cluster, NcclGraph graph, const Shape& shape,
                     const Links& links, int capability) {
  const int heads = std::min(shape.each, kMaxChannels);
  if (shape.nodes > 1) {
    // All heads use the node's NICs: the search lowers the speed until they fit.
    graph.channels = std::max<double>(graph.channels, heads);
    const BytesPerSecond each =
        listed(speeds(capability, true), node_bandwidth(cluster) / graph.channels);
    graph.intra = std::min(graph.intra, each);
    graph.inter = std::min(graph.inter, each);
    return graph;
  }
  // A GPU's link carries the other GPUs' addends and its own results.
  graph.channels = heads;
  graph.intra = graph.inter =
      listed(speeds(capability, false), links.inside->bandwidth / (2 * graph.channels));
  return graph;
}

// Returns the cluster at rated speeds, by which NCCL chooses.
Cluster as_rated(const Cluster& cluster) {
  Cluster rated = cluster;
  for (Tier& tier : rated.tiers) tier.bandwidth /= tier.efficiency;
  return rated;
}

// Returns the part of the topology that both the choice and the time use.
NcclTopology topology_of(const Cluster& cluster, const Groups& groups, const Shape& shape,
                         const Links& links) {
  const int capability = capability_of(cluster);
  NcclTopology t;
  t.nodes = shape.nodes;
  t.ranks = groups.size;
  t.cpu = cluster.nccl.cpu;
  t.least_capability = t.most_capability = capability;
  // A switch joins the GPUs of a node from eight on, since Ampere.
  t.nvswitch = links.nvlink &&
               cluster.nccl.nvswitch.value_or(cluster.gpus_per_node >= 8 && capability >= 80);
  return t;
}

// Returns the channels that NCCL lays through the group's NICs or inside a node. Those of a fast
// NIC are cut in two; between one and two the number is fractional, so that the time is continuous.
double driving_channels(const Cluster& cluster, const Shape& shape, const Links& links) {
  if (shape.nodes == 1) return kMaxChannels;
  constexpr BytesPerSecond kCut = 25 * kGigabytePerSecond;
  const Tier& outside = inter_tier(cluster);
  const int nics = links.inside != nullptr ? outside.nics : 1;
  const bool cut_in_two = nics <= 4 || capability_of(cluster) <= 80;
  const double each =
      cut_in_two ? std::clamp(outside.narrower() / outside.nics / kCut, 1.0, 2.0) : 1;
  return std::min<double>(kMaxChannels, each * nics);
}

// Returns the latency of a message between ranks of different nodes, 0 inside one. Ranks above the
// last tier, as in a view of a part of the cluster, meet in that tier.
Seconds latency_across(const Cluster& cluster, int from, int to) {
  if (from / cluster.gpus_per_node == to / cluster.gpus_per_node) return 0;
  const auto tier = std::ranges::find_if(
      cluster.tiers, [&](const Tier& t) { return from / t.span == to / t.span; });
  return tier == cluster.tiers.end() ? cluster.tiers.back().latency : tier->latency;
}

// Returns the mean latency of a ring's messages that cross from node to node.
Seconds latency_between_nodes(const Cluster& cluster, const Groups& groups) {
  Seconds sum = 0;
  int crossings = 0;
  for (int m = 0; m < groups.size; ++m) {
    const int here = groups.rank(0, m);
    const int next = groups.rank(0, (m + 1) % groups.size);
    if (here / cluster.gpus_per_node == next / cluster.gpus_per_node) continue;
    sum += latency_across(cluster, here, next);
    ++crossings;
  }
  return crossings > 0 ? sum / crossings : 0;
}

// Returns the sum of the latencies between nodes of a message from member to member, in the group
// with the largest.
Seconds latencies_between_nodes(const Cluster& cluster, const Groups& groups) {
  Seconds longest = 0;
  for (int g = 0; g < groups.count; ++g) {
    Seconds sum = 0;
    for (int m = 0; m + 1 < groups.size; ++m) {
      sum += latency_across(cluster, groups.rank(g, m), groups.rank(g, m + 1));
    }
    longest = std::max(longest, sum);
  }
  return longest;
}

// Returns a graph that fills the links as they are, regardless of NCCL's list of speeds.
NcclGraph filling(NcclGraph graph, double channels, BytesPerSecond inside, BytesPerSecond across) {
  graph.channels = channels;
  graph.intra = inside / channels;
  graph.inter = across / channels;
  return graph;
}

// Returns the bandwidth of all channels by the hints / that of the guessed graph.
double hinted_share(const NcclGraph& hinted, const NcclGraph& guess,
                    BytesPerSecond NcclGraph::*rate) {
  return hinted.*rate * hinted.channels / (guess.*rate * guess.channels);
}

// Returns the share of a node's rate that its library uses for groups over `nodes`. A processor
// keeps up with sockets of 10 Gbit/s; above it the used rate grows with the square root, by logs of
// 50, 400 and 800 Gbit/s.
double used_share(const Cluster& cluster, int nodes) {
  constexpr BytesPerSecond kKeptUp = 10 * kGigabitPerSecond;
  if (cluster.fabric != Fabric::kTcp || nodes == 1) return 1;
  return std::sqrt(std::min(1.0, kKeptUp / node_bandwidth(cluster)));
}

NcclHints without_channels(NcclHints hints) {
  hints.channels = 0;
  hints.channel_intra = hints.channel_inter = 0;
  return hints;
}

// Returns the topology for the time of a collective, with the links' own rates. Concurrent groups
// share a node's NICs equally; the fabric lets `through` of their rate pass.
NcclTopology filled_topology(const Cluster& whole, const Groups& groups, double through) {
  const Cluster cluster = within_reach(whole, groups);
  const Shape shape = shape_of(cluster, groups);
  const Links links = links_of(cluster, shape);
  NcclTopology t = topology_of(cluster, groups, shape, links);
  const double used = used_share(cluster, shape.nodes);
  const BytesPerSecond out =
      shape.nodes > 1 ? used * through * node_bandwidth(cluster) / shape.sharing : 0;
  const BytesPerSecond total = shape.nodes > 1 ? std::min(links.total, out) : links.total;
  Graphs hinted = graphs_of(cluster.nccl, shape, links, t.least_capability);
  const Graphs guess = graphs_of(without_channels(cluster.nccl), shape, links, t.least_capability);
  // A NIC's speed does not tell its kind: boxes with a switch are built with GPUDirect.
  const bool direct = cluster.nccl.gpu_direct.value_or(t.nvswitch);
  for (NcclGraph* graph : {&hinted.ring, &hinted.tree}) {
    graph->path_inter = direct ? NcclPath::kPxb : NcclPath::kPhb;
    graph->intra_latency = links.inside != nullptr ? links.inside->latency : 0;
    graph->inter_latency = latency_between_nodes(cluster, groups);
  }
  // A tree is bound by the ports' rate in one direction, or by the links inside.
  const BytesPerSecond raised_total =
      shape.nodes > 1 ? std::max(total, std::min(kMaxTreeRatio * total, carried_inside(links)))
                      : total;
  const bool channels_given = hinted.ring.channels != guess.ring.channels;
  const double channels =
      channels_given ? hinted.ring.channels : driving_channels(cluster, shape, links);
  const bool rates = cluster.nccl.channel_intra > 0 || cluster.nccl.channel_inter > 0;
  const auto share = [&](NcclGraph Graphs::*graph, BytesPerSecond NcclGraph::*rate) {
    return rates ? hinted_share(hinted.*graph, guess.*graph, rate) : 1;
  };
  t.ring = filling(hinted.ring, channels, total * share(&Graphs::ring, &NcclGraph::intra),
                   total * share(&Graphs::ring, &NcclGraph::inter));
  t.tree = filling(hinted.tree, channels, raised_total * share(&Graphs::tree, &NcclGraph::intra),
                   total * share(&Graphs::tree, &NcclGraph::inter));
  if (t.nvswitch) {
    const int heads = std::min(shape.each, kMaxChannels);
    const BytesPerSecond switched =
        shape.nodes > 1 ? std::min(out, links.each * heads) : links.inside->bandwidth / 2;
    t.nvls = filling(hinted.ring, heads, switched, switched);
  }
  // NCCL lengthens a ring's latency from 64 bytes per rank and channel on, soonest with one
  // channel.
  t.channels = 1;
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
  const Cluster rated = as_rated(within_reach(cluster, groups));
  const Shape shape = shape_of(rated, groups);
  const Links links = links_of(rated, shape);
  NcclTopology t = topology_of(rated, groups, shape, links);
  const Graphs graphs = graphs_of(rated.nccl, shape, links, t.least_capability);
  t.channels = connected_channels(graphs.ring, shape, t.least_capability);
  t.ring = graphs.ring;
  t.tree = graphs.tree;
  if (t.nvswitch) t.nvls = nvls_graph(rated, graphs.ring, shape, links, t.least_capability);
  return t;
}

NcclHints beyond_guesses(const Cluster& cluster) {
  NcclHints hints = cluster.nccl;
  const bool none = hints.channels == 0 && hints.channel_intra == 0 && hints.channel_inter == 0;
  if (none || cluster.ranks() < 2) return hints;
  Cluster guessing = cluster;
  guessing.nccl = without_channels(hints);
  const NcclTopology guess = nccl_topology(guessing, world_group(cluster.ranks()));
  if (hints.channels == static_cast<int>(guess.ring.channels)) hints.channels = 0;
  const auto repeats = [](BytesPerSecond given, BytesPerSecond guessed) {
    return given > 0 && given_or(given, guessed) == guessed;
  };
  if (repeats(hints.channel_intra, guess.tree.intra)) hints.channel_intra = 0;
  if (repeats(hints.channel_inter, guess.ring.inter)) hints.channel_inter = 0;
  return hints;
}

std::vector<std::string> algorithm_choices() {
  auto names = algorithm_names();
  names.emplace_back(kNcclName);
  names.emplace_back(all_to_all()->name);
  return names;
}

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

// Returns a path by the box, even if few of its GPUs are members.
Path path_of(const Cluster& cluster, const Groups& groups) {
  const Tier* inside = intra_tier(cluster);
  const bool nvlink =
      inside != nullptr && cluster.nccl.nvlink.value_or(inside->bandwidth > kFastestPcie);
  return {shape_of(cluster, groups).nodes > 1, cluster.fabric, nvlink};
}

double passing_share(const Cluster& cluster, const Collective& collective) {
  if (cluster.topology == nullptr || cluster.nodes == 1) return 1;
  const Network network(cluster);
  const int ranks = collective.groups.size;
  const bool fits = collective.algorithm->fits(collective.kind, ranks);
  const Algorithm& algorithm = fits ? *collective.algorithm : *find_algorithm("ring");
  const Footprint footprint(network, collective.groups, algorithm.edges(collective.kind, ranks));
  double all = 0;
  double ports = 0;
  for (const Stage& stage : algorithm.stages(collective.kind, ranks, collective.elements)) {
    std::vector<double> busy(footprint.link_kinds(), 0);
    for (std::size_t s = stage.first; s < stage.last; ++s) {
      for (const auto& [kind, count] : footprint.sets()[s].load) {
        busy[static_cast<std::size_t>(kind)] += count / footprint.capacity(kind);
      }
    }
    double slowest = 0;
    double slowest_port = 0;
    for (std::size_t kind = 0; kind < busy.size(); ++kind) {
      const int id = footprint.first_link(static_cast<int>(kind));
      const auto tier = static_cast<std::size_t>(network.link(id).tier);
      if (cluster.tiers[tier].span <= cluster.gpus_per_node) continue;
      slowest = std::max(slowest, busy[kind]);
      if (network.in_fabric(id) == nullptr) slowest_port = std::max(slowest_port, busy[kind]);
    }
    const double share = stage.fraction * static_cast<double>(stage.repeat);
    all += slowest * share;
    ports += slowest_port * share;
  }
  return all > 0 ? ports / all : 1;
}

namespace {

// Returns the cluster with the bandwidths of its data sheets, to which the prior was fitted. A
// measured bandwidth has no data sheet: it is made so large that it decides nothing here.
Cluster as_promised(const Cluster& cluster) {
  constexpr double kBeyondAnyBias = 16;
  Cluster promised = as_rated(cluster);
  for (Tier& tier : promised.tiers) {
    if (tier.measured) tier.bandwidth *= kBeyondAnyBias;
  }
  return promised;
}

bool same_bandwidths(const Cluster& a, const Cluster& b) {
  return std::ranges::equal(a.tiers, b.tiers, {}, &Tier::bandwidth, &Tier::bandwidth);
}

}  // namespace

// Groups of one shape, on the given links and, if those differ, on the promised ones.
struct NcclCostModel::Known {
  // NCCL's model of groups of one shape on given links, and the wire's need by offered algorithm.
  struct LinkCosts {
    LinkCosts(const Cluster& cluster, const Collective& collective)
        : topology(filled_topology(cluster, collective.groups, passing_share(cluster, collective))),
          table(nccl_table(topology, collective.kind)),
          without_bytes(table) {
      Collective moved = collective;
      for (std::size_t a = 0; a < kNcclAlgorithms; ++a) {
        const auto offered = [](const NcclCell& cell) { return cell.bandwidth > 0; };
        if (std::none_of(table[a].begin(), table[a].end(), offered)) continue;
        moved.nccl = NcclPick{static_cast<NcclAlgorithm>(a), NcclProtocol::kSimple};
        wire[a] = wire_seconds_per_byte(cluster, moved);
        for (NcclCell& cell : without_bytes[a]) {
          if (offered(cell)) cell.bandwidth = std::numeric_limits<double>::infinity();
        }
      }
    }

    struct Times {
      Seconds latency = 0;  // part of `time` that does not depend on the payload
      Seconds time = 0;     // at least `floor`
      Seconds floor = 0;    // the wire's need: its bytes over its bandwidth
    };
    // Returns the times by NCCL's model; nullopt if NCCL does not offer this algorithm and
    // protocol.
    std::optional<Times> times_of(CollectiveKind kind, const NcclPick& pick, double bytes) const {
      const auto time = nccl_time(topology, table, kind, pick, bytes);
      if (!time) return std::nullopt;
      const Seconds floor = wire[static_cast<std::size_t>(pick.algorithm)] * bytes;
      const Seconds latency = *nccl_time(topology, without_bytes, kind, pick, bytes);
      return Times{latency, std::max(*time, floor), floor};
    }

    NcclTopology topology;
    NcclTable table;
    NcclTable without_bytes;  // `table` with infinite bandwidths, for the latency
    std::array<double, kNcclAlgorithms> wire{};  // seconds per byte of payload
  };

  Known(const Cluster& cluster, const Collective& collective)
      : kind(collective.kind),
        groups(collective.groups),
        path(path_of(cluster, groups)),
        reached(cluster, collective),
        across(chain_across(cluster, collective)),
        first(path.across ? reached.topology.ring.inter_latency
                          : reached.topology.ring.intra_latency) {
    used = used_share(within_reach(cluster, groups), reached.topology.nodes);
    const Cluster other = as_promised(cluster);
    if (!same_bandwidths(other, cluster)) promised.emplace(other, collective);
    measured = std::ranges::any_of(within_reach(cluster, groups).tiers, &Tier::measured);
  }

  // Returns the latency of reduce and broadcast from node to node, which NCCL prices by a constant.
  static Seconds chain_across(const Cluster& cluster, const Collective& collective) {
    const bool chain =
        collective.kind == CollectiveKind::kReduce || collective.kind == CollectiveKind::kBroadcast;
    return chain ? latencies_between_nodes(cluster, collective.groups) : 0;
  }

  // Returns the time that logs of such networks suggest. The prior was fitted to whole collectives,
  // fixed costs included, on links of data sheets. Slower links, by `efficiency` or measured, count
  // if they make the collective longer than that. The wire's bytes over its bandwidth are a floor.
  // Never longer with more bandwidth, promised or reached.
  CollectiveTime likely(double bytes, Seconds overhead) const {
    const Prior prior = nccl_prior(path, bytes);
    CollectiveTime answer{.time = std::numeric_limits<double>::infinity(),
                          .spread = prior.spread,
                          .measured = false,
                          .link_slowdown = 1};
    const double stretch = std::exp(prior.bias);
    for (std::size_t a = 0; a < kNcclAlgorithms; ++a) {
      for (std::size_t p = 0; p < kNcclProtocols; ++p) {
        const NcclPick pick{static_cast<NcclAlgorithm>(a), static_cast<NcclProtocol>(p)};
        const auto here = reached.times_of(kind, pick, bytes);
        if (!here) continue;
        const auto sheet = promised ? promised->times_of(kind, pick, bytes) : here;
        Seconds likely = stretch * (here->time + overhead) - overhead;
        if (sheet && prior.bias > 0) {
          likely = std::max(stretch * (sheet->time + overhead) - overhead,
                            here->time + (stretch - 1) * (here->latency + overhead));
        }
        const Seconds known = std::max({here->floor, here->time / kMaxSpeedup, likely});
        const Seconds time = std::max(across + known, first + here->floor);
        if (time >= answer.time) continue;
        answer.time = time;
        // The processors of a node are busy for all its sockets: streams share their rate.
        const double slower = promised ? (likely + overhead) / (here->time + overhead) : stretch;
        answer.link_slowdown = slower / used;
        answer.spread = spread_of(prior, (here->time - here->latency) / time);
      }
    }
    return answer;
  }

  // Returns the spread: if bandwidths were measured, the carrying part of the time is well known.
  double spread_of(const Prior& prior, double carrying) const {
    constexpr double kMeasured = 0.1;
    if (!measured) return prior.spread;
    const double share = std::min(carrying, 1.0);
    return std::hypot((1 - share) * prior.spread, share * std::min(kMeasured, prior.spread));
  }

  CollectiveKind kind;
  Groups groups;
  Path path;
  LinkCosts reached;
  std::optional<LinkCosts> promised;
  bool measured = false;  // bandwidth of at least one tier
  double used = 1;        // of the nodes' rates
  Seconds across = 0;     // latencies between nodes in sequence, which NCCL's own model omits
  Seconds first = 0;      // minimum latency of the first byte
};

NcclCostModel::NcclCostModel(const Cluster& cluster) : cluster_(cluster) {}
NcclCostModel::~NcclCostModel() = default;

std::optional<CollectiveTime> NcclCostModel::time(const Collective& collective) const {
  if (!collective.nccl || collective.groups.size < 2) return std::nullopt;
  const auto bytes = std::max(1.0, static_cast<double>(collective.bytes()));
  return find_known(collective).likely(bytes, cluster_.collective_overhead);
}

const NcclCostModel::Known& NcclCostModel::find_known(const Collective& collective) const {
  const std::lock_guard<std::mutex> guard(lock_);
  for (const auto& each : known_) {
    if (each->kind == collective.kind && each->groups == collective.groups) return *each;
  }
  known_.push_back(std::make_unique<const Known>(cluster_, collective));
  return *known_.back();
}

}  // namespace syncline::collective
