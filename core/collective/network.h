// The cluster's links and the way of a message through them: a tree of full-duplex ports. Model and
// simulation price the same links, so they can only differ in how they follow time.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "core/scenario/cluster.h"

namespace syncline::collective {

struct Link {
  BytesPerSecond capacity = 0;
  bool per_flow = false;  // a cap on each flow by itself, not shared
  int tier = 0;
  enum class Part { kUp, kDown, kBackbone } part = Part::kUp;  // backbone: inside a switch
};

class Network {
 public:
  explicit Network(const Cluster& cluster);

  int link_count() const { return static_cast<int>(links_.size()); }
  const Link& link(int id) const { return links_[static_cast<std::size_t>(id)]; }
  int tiers() const { return static_cast<int>(tiers_.size()); }

  // The outermost tier that a message between two different ranks crosses.
  int crossing(int from, int to) const;
  Seconds latency(int tier) const { return tiers_[static_cast<std::size_t>(tier)].latency; }

  // The link by which a rank sends: the up port of the innermost tier.
  static int port_of(int rank) { return 2 * rank; }

  // The smallest latency of any tier, which every message pays; 0 without tiers.
  Seconds fastest() const;
  int ranks() const { return ranks_; }

  // Appends the links on the way: ports up and down, switch backbones, per-flow caps; the sender's
  // own port and the receiver's come first.
  void route(int from, int to, std::vector<int>& links) const;

 private:
  struct Level {
    Seconds latency = 0;
    int unit = 1;        // ranks below one port
    int span = 1;        // ranks below one switch
    int first_port = 0;  // link ids: up of unit u is first_port + 2u, down is the next one
    int first_backbone = -1;
    int cap = -1;
  };
  int ranks_;
  std::vector<Level> tiers_;
  std::vector<Link> links_;
};

}  // namespace syncline::collective
