// The cluster's links and the way of a message through them: a tree of full-duplex ports, and above
// the nodes' ports the fabric, if one is given. Model and simulation cost the same links, so they
// differ only in how they follow time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/cluster.h"
#include "core/collective/collective.h"
#include "core/fabric/topology.h"

namespace syncline::collective {

struct Link {
  BytesPerSecond capacity = 0;
  bool per_flow = false;  // a cap on each flow by itself, not shared
  int tier = 0;
};

class Network {
 public:
  explicit Network(const Cluster& cluster);

  int link_count() const { return static_cast<int>(links_.size()); }
  const Link& link(int id) const { return links_[static_cast<std::size_t>(id)]; }
  int tiers() const { return static_cast<int>(tiers_.size()); }

  // Returns the outermost tier that a message between two different ranks crosses.
  int crossing(int from, int to) const;
  // Returns the latency of a message between them: that of the tier, and of the fabric's hops.
  Seconds latency(int from, int to) const;

  // Returns the link by which a rank sends: the up port of the innermost tier.
  static int port_of(int rank) { return 2 * rank; }

  // Returns the minimum latency of any tier, which every message pays; 0 without tiers.
  Seconds fastest() const;
  int ranks() const { return ranks_; }

  // Returns the number of equal parts of a message between nodes; each takes a way of its own.
  int parts() const { return parts_; }
  int parts(int from, int to) const { return crossing(from, to) < fabric_tier_ ? 1 : parts_; }

  // Appends the links on the way of a part: ports up and down, switch backbones, per-flow caps, the
  // fabric's; the sender's own port and the receiver's come first. Parts take in turn those of the
  // node's lanes (NICs) that belong to members of the group.
  void route(const Groups& groups, int from, int to, int part, std::vector<int>& links) const;
  // Appends the ways of all parts, in order; a link that all parts share is listed `parts()` times.
  void route(const Groups& groups, int from, int to, std::vector<int>& links) const;

  // Returns a link of the fabric, or nullptr for a port.
  const fabric::FabricLink* in_fabric(int id) const {
    return id < first_in_fabric_ ? nullptr : &topology_->links[kept_[index_in_fabric(id)]];
  }
  const fabric::Topology* topology() const { return topology_.get(); }

 private:
  std::size_t index_in_fabric(int id) const {
    return static_cast<std::size_t>(id - first_in_fabric_);
  }
  void add_fabric(const Cluster& cluster);
  int lane_of(const Groups& groups, int rank, int part) const;

  struct Level {
    Seconds latency = 0;
    int unit = 1;        // ranks below one port
    int span = 1;        // ranks below one switch
    int first_port = 0;  // link ids: up of unit u is first_port + 2u, down is the next one
    int first_backbone = -1;
    int cap = -1;
  };
  int ranks_;
  int gpus_per_node_;
  std::vector<Level> tiers_;
  std::vector<Link> links_;

  // The fabric without links that can never be full: a single job on a balanced fabric sees only
  // its nodes' ports.
  std::shared_ptr<const fabric::Topology> topology_;
  std::shared_ptr<fabric::Ways> ways_;
  std::shared_ptr<fabric::Ways> hops_;  // if hops cost time
  int parts_ = 1;
  int fabric_tier_ = kMaxTiers;  // its ports are the hosts' ports
  int first_lane_ = -1;          // up and down, lane by lane, node by node
  int first_in_fabric_ = 1 << 30;
  std::vector<std::size_t> kept_;  // by link after first_in_fabric_: its index in the fabric
  std::vector<int> link_of_;       // by index in the fabric: link id; -1: never full
};

}  // namespace syncline::collective
