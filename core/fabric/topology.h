// The network beyond the nodes' own ports: switches, directed links (bytes per second), and the
// switch of each host. A host is a node, or one of the `lanes` of a node: a port. Messages take the
// shortest way; of several, those with the lowest order of the first link. The rest is shared part
// by part: in turn, or by a seeded hash (ECMP), so that flows collide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.h"

namespace syncline::fabric {

struct Switch {
  std::string name;
  // The area around it, by the switch that represents that area; -1: none. A leaf's is its pod.
  int inside = -1;
  int pool = -1;  // switches of one pool are equal if messages spread evenly; -1: no pool
};

struct FabricLink {
  int from = 0;
  int to = 0;
  BytesPerSecond capacity = 0;
  std::string sort = {};  // name of its kind of links: "spine", "global", "x"
  int order = 0;          // of several shortest ways, the lowest first
  int length = 1;
  int area = -1;  // the link joins hosts inside this switch's area with those outside; -1: unknown
};

struct Topology {
  std::string kind;
  std::vector<Switch> switches;
  std::vector<FabricLink> links;
  std::vector<int> plugs;  // by host (node * lanes + lane): its switch
  int lanes = 1;
  int parts = 1;  // equal parts of a message between nodes
  bool hashed = false;
  std::uint64_t seed = 1;
  Seconds hop = 0;         // extra latency of a message per link between two switches
  std::vector<int> nodes;  // by the job's node: the fabric's node
  std::shared_ptr<const Topology>
      as_measured;                 // the fabric when collectives were measured; null: as now
  bool shared = false;             // with other jobs: their nodes load links, too
  std::vector<std::string> names;  // of the fabric's nodes, if they have any
  std::string given;               // JSON of the scenario

  int all_nodes() const { return static_cast<int>(plugs.size()) / lanes; }
  int host(int node, int lane) const {
    return nodes[static_cast<std::size_t>(node)] * lanes + lane;
  }
  std::string name(const FabricLink& link) const {
    return switches[static_cast<std::size_t>(link.from)].name + "-" +
           switches[static_cast<std::size_t>(link.to)].name;
  }
};

inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Adds a cable: a link in each direction.
void join(Topology& topology, const FabricLink& link);

// Gives the job all of the fabric's nodes, in their order.
void take_all_nodes(Topology& topology);

// Returns the topology with one switch per pool, and parallel links as one of their sum.
Topology merge_pools(const Topology& topology);

// Returns the largest n such that every group of n consecutive nodes of the job shares a leaf.
int nodes_at_a_leaf(const Topology& topology);

// Returns true for links that all hosts of the job together, at `port` bytes per second each,
// cannot fill. Other jobs might.
std::vector<bool> never_full(const Topology& topology, BytesPerSecond port);

// The ways through a topology, found on demand; not thread-safe.
class Ways {
 public:
  explicit Ways(const Topology& topology);  // Requires that `topology` outlives it.

  // Appends the links between two hosts, in order. Throws InputError if no way is left.
  void find(int from, int to, int part, std::vector<int>& links);

  // Returns the number of links between two hosts.
  int hops(int from, int to);

 private:
  const std::vector<int>& distances_to(int target);
  const Topology& topology_;
  std::vector<std::vector<int>> leaving_;    // by switch: links from it
  std::vector<std::vector<int>> reaching_;   // by switch: links to it
  std::vector<std::vector<int>> distances_;  // by target, once asked for
  std::vector<int> choices_;
};

}  // namespace syncline::fabric
