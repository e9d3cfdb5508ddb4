// The cluster's links and the way of a message through them: a tree of full-duplex ports, and above
// the nodes' the fabric, where one is given. Model and simulation cost the same links, so they can
// only differ in how they follow time.
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
  // Of a message between them: that of the tier, and of the fabric's hops.
  Seconds latency(int from, int to) const;

  // Returns the link by which a rank sends: the up port of the innermost tier.
  static int port_of(int rank) { return 2 * rank; }

  // Returns the smallest latency of any tier, which every message pays; 0 without tiers.
  Seconds fastest() const;
  int ranks() const { return ranks_; }

  // A message between nodes travels in so many parts of one size, each by a way of its own.
  int parts() const { return parts_; }
  int parts(int from, int to) const { return crossing(from, to) < fabric_tier_ ? 1 : parts_; }

  // Appends the links on the way of a part: ports up and down, switch backbones, per-flow caps, the
  // fabric's; the sender's own port and the receiver's come first. Of the node's lanes (NICs) parts
  // take those in turn that belong to members of the group.
  void route(const Groups& groups, int from, int to, int part, std::vector<int>& links) const;
  // Of all parts, one behind the other; what all share is there `parts()` times.
  void route(const Groups& groups, int from, int to, std::vector<int>& links) const;

  // Of links of the fabric alone; nullptr for a port.
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

  // The fabric with what can never be full left out: alone on a balanced one a job meets its nodes'
  // ports alone.
  std::shared_ptr<const fabric::Topology> topology_;
  std::shared_ptr<fabric::Ways> ways_;
  std::shared_ptr<fabric::Ways> hops_;  // where they cost time
  int parts_ = 1;
  int fabric_tier_ = kMostTiers;  // whose ports the hosts' are
  int first_lane_ = -1;           // up and down, lane by lane, node by node
  int first_in_fabric_ = 1 << 30;
  std::vector<std::size_t> kept_;  // by link from the first in the fabric: its index there
  std::vector<int> link_of_;       // by index there: its id; -1: never full
};

}  // namespace syncline::collective
