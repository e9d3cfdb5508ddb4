// A payload of S bytes goes to a group of N ranks. A port of a tier separates the m members below
// it from the N - m others (0 < m < N); the group has members below U ports of the tier.
//
//                   into the port     out of it         over all ports of the tier, each way
//   all-reduce      S                 S                 2 (U-1) S
//   reduce-scatter  m/N S             (N-m)/N S         (U-1) S
//   all-gather      (N-m)/N S         m/N S             (U-1) S
//   reduce          S, at the root's  S, at the others' (U-1) S
//   broadcast       S, at the others' S, at the root's  (U-1) S
//
// The first two columns hold for any algorithm: the others' sum, or their part of a shard, must
// enter, and the members' must leave. The third holds for messages between ranks: each element
// needs U-1 messages with the others' values, and all-reduce U-1 more with the sum (one-way gossip
// takes 2U-2 messages; Harary and Schwenk 1974). Ports of a tier are alike, so the busiest carries
// at least the sum / U.
//
// A ring moves more, in any order: each edge carries E = 2 (N-1)/N S of an all-reduce, (N-1)/N
// S of an all-gather or reduce-scatter, and enters and leaves every port that divides the group. A
// switch that sums and copies (NVLS) moves less: the third column does not hold inside the node.
//
// Concurrent groups add up. A tier's time is the busiest port's bytes / bandwidth, and for an
// oversubscribed switch its own groups' bytes / the switch's bandwidth. The floor is the slowest
// tier's time. It counts only bytes: no latency, and shards as even, which they are up to one
// element.
//
// With a cap on flows it is at least the busiest flow's bytes / cap. A pair of ranks has two
// flows at most (two trees), so that a port has its bytes / (cap * flows of all pairs across it).
// NCCL has far fewer: an edge of a ring, or of a tree, is one flow in each channel, for any ranks
// below the port. Its search lays a channel through each NIC that the group reaches, or the number
// in the cluster's hints, and connects each twice; a connection is one socket by default
// (NCCL_NSOCKS_PERTHREAD, NCCL_SOCKET_NTHREADS). Inside a node a summing switch has no flows.
#include "core/collective/wire_floor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace syncline::collective {
namespace {

enum class Moves { kMessages, kRing, kSwitch };

Moves moves_of(const Collective& collective) {
  if (!collective.nccl) return Moves::kMessages;
  const NcclAlgorithm algorithm = collective.nccl->algorithm;
  if (algorithm == NcclAlgorithm::kRing) return Moves::kRing;
  const bool nvls = algorithm == NcclAlgorithm::kNvls || algorithm == NcclAlgorithm::kNvlsTree;
  return nvls ? Moves::kSwitch : Moves::kMessages;
}

// Shares of the payload of one group at one port.
struct Crossing {
  double in = 0;
  double out = 0;
};

// Returns the shares for a port with `share` of the group's members below it; `root`: the root too.
Crossing must_cross(CollectiveKind kind, double share, bool root) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return {1, 1};
    case CollectiveKind::kReduceScatter:
      return {share, 1 - share};
    case CollectiveKind::kAllGather:
      return {1 - share, share};
    case CollectiveKind::kReduce:
      return root ? Crossing{1, 0} : Crossing{0, 1};
    case CollectiveKind::kBroadcast:
      return root ? Crossing{0, 1} : Crossing{1, 0};
  }
  return {};
}

// Returns the load of a ring's edge; a chain, for reduce and broadcast, is a ring left open.
double ring_edge(CollectiveKind kind, int ranks) {
  if (kind == CollectiveKind::kReduce || kind == CollectiveKind::kBroadcast) return 1;
  return (kind == CollectiveKind::kAllReduce ? 2.0 : 1.0) * (ranks - 1) / ranks;
}

// Returns the largest message of Bruck's: 1, 2, 4, ... parts, and the rest to the last peer.
double longest_of_pat(int ranks) {
  const auto whole = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  return static_cast<double>(std::max(whole / 2, ranks - whole)) / ranks;
}

// Returns the load of one edge of NCCL's graph, in its busiest direction.
double edge_of(const Collective& collective) {
  const int ranks = collective.groups.size;
  switch (collective.nccl->algorithm) {
    case NcclAlgorithm::kRing:
      return ring_edge(collective.kind, ranks);
    case NcclAlgorithm::kPat:
      return longest_of_pat(ranks);
    default:
      return collective.kind == CollectiveKind::kAllReduce ? 1 : ring_edge(collective.kind, ranks);
  }
}

// Returns the flows of such an edge: a channel per NIC near the group, each connected twice.
int flows_of(const Cluster& cluster, const Groups& groups) {
  constexpr int kConnected = 2;
  if (cluster.nccl.channels > 0) return kConnected * cluster.nccl.channels;
  const bool several = cluster.gpus_per_node > 1 && cluster.tiers.size() > 1 &&
                       std::abs(groups.member_step) < cluster.gpus_per_node;
  return kConnected * (several ? cluster.tiers[1].nics : 1);
}

// One tier, all groups.
class TierFloor {
 public:
  TierFloor(const Cluster& cluster, std::size_t tier, const Collective& collective)
      : tier_(cluster.tiers[tier]),
        kind_(collective.kind),
        groups_(collective.groups),
        unit_(tier == 0 ? 1 : cluster.tiers[tier - 1].span),
        moves_(moves_of(collective)),
        edge_(collective.nccl ? edge_of(collective) : 0),
        flows_(collective.nccl ? flows_of(cluster, groups_) : 0),
        ports_(static_cast<std::size_t>(cluster.ranks() / unit_)),
        switches_(static_cast<std::size_t>(cluster.ranks() / tier_.span), 0.0) {
    const bool inside_nodes = tier == 0 && cluster.gpus_per_node > 1;
    if (moves_ == Moves::kSwitch && !inside_nodes) moves_ = Moves::kMessages;
  }

  // Returns seconds per byte of payload.
  double seconds_per_byte() {
    for (int g = 0; g < groups_.count; ++g) add_group(g);
    double seconds = slowest_flow_;
    double used = 0;
    for (const Crossing& port : ports_) {
      seconds = std::max({seconds, port.in / tier_.bandwidth, port.out / tier_.upload()});
      used += port.in + port.out > 0 ? 1 : 0;
    }
    if (used > 0) seconds = std::max(seconds, in_all_ / used / tier_.narrower());
    if (tier_.oversubscription > 1) {
      const double carries =
          tier_.bandwidth * (static_cast<double>(tier_.span) / unit_) / tier_.oversubscription;
      seconds = std::max(seconds, *std::max_element(switches_.begin(), switches_.end()) / carries);
    }
    return seconds;
  }

 private:
  // The group's members below a port.
  struct Part {
    std::size_t port = 0;
    int members = 0;
  };

  std::vector<Part> parts_of(int group) const {
    std::vector<Part> parts;
    for (int m = 0; m < groups_.size; ++m) {
      const auto port = static_cast<std::size_t>(groups_.rank(group, m) / unit_);
      // Members are in order, so those of one port are adjacent.
      if (parts.empty() || parts.back().port != port) parts.push_back({port, 0});
      ++parts.back().members;
    }
    return parts;
  }

  // Adds the bytes that a group must carry over each port and switch of the tier, per byte of
  // payload.
  void add_group(int group) {
    const std::vector<Part> parts = parts_of(group);
    if (parts.size() < 2) return;
    const double edge = moves_ == Moves::kRing ? ring_edge(kind_, groups_.size) : 0;
    double out_of_ports = 0;
    for (const Part& part : parts) {
      const bool root = &part == &parts.front();  // member 0 is the root
      const double share = static_cast<double>(part.members) / groups_.size;
      Crossing crossing = must_cross(kind_, share, root);
      if (crossing.in > 0) crossing.in = std::max(crossing.in, edge);
      if (crossing.out > 0) crossing.out = std::max(crossing.out, edge);
      Crossing& port = ports_[part.port];
      port.in += crossing.in;
      port.out += crossing.out;
      out_of_ports += crossing.out;
      cap_flows(part, std::max(crossing.in, crossing.out));
    }
    const double others = static_cast<double>(parts.size()) - 1;
    const double received =
        moves_ == Moves::kSwitch ? 0 : (kind_ == CollectiveKind::kAllReduce ? 2 : 1) * others;
    in_all_ += received;
    // A switch that joins the whole group carries all of it; a larger group's load on one of its
    // switches depends on the algorithm.
    const auto ports = static_cast<std::size_t>(tier_.span / unit_);
    const std::size_t first = parts.front().port / ports;
    if (first == parts.back().port / ports) switches_[first] += std::max(received, out_of_ports);
  }

  // Raises the slowest flow by those with which `part` of one group sends or receives `crossing`.
  void cap_flows(const Part& part, double crossing) {
    if (!std::isfinite(tier_.flow_cap) || moves_ == Moves::kSwitch) return;
    const double pairs = 2.0 * part.members * (groups_.size - part.members);
    const double busiest = flows_ > 0 ? edge_ / flows_ : crossing / pairs;
    slowest_flow_ = std::max(slowest_flow_, busiest / tier_.flow_cap);
  }

  const Tier& tier_;
  CollectiveKind kind_;
  const Groups& groups_;
  int unit_;  // ranks below one port
  Moves moves_;
  double edge_ = 0;  // load of an edge of NCCL's ring or tree, all channels together
  int flows_ = 0;    // per such edge; 0: pairs of ranks send to each other
  std::vector<Crossing> ports_;
  std::vector<double> switches_;  // bytes through each, for groups that it joins as a whole
  double in_all_ = 0;             // minimum over all ports together
  double slowest_flow_ = 0;
};

}  // namespace

double wire_seconds_per_byte(const Cluster& cluster, const Collective& collective) {
  double slowest = 0;
  if (collective.groups.size < 2) return slowest;
  for (std::size_t tier = 0; tier < cluster.tiers.size(); ++tier) {
    slowest = std::max(slowest, TierFloor(cluster, tier, collective).seconds_per_byte());
  }
  return slowest;
}

Seconds wire_floor(const Cluster& cluster, const Collective& collective) {
  return wire_seconds_per_byte(cluster, collective) * static_cast<double>(collective.bytes());
}

}  // namespace syncline::collective
