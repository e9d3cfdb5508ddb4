// What lies between the nodes beyond their own ports: switches, directed links (bytes per second),
// and which host is plugged in where. A host is a node, or one of the `lanes` of a node: a port.
// Messages go the shortest way; of several, those whose first link has the lowest order. What is
// left is dealt out part by part: in turn, or by a seeded hash (ECMP), so that flows collide.
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
  // The area around it, by the switch that stands for that one; -1: there is none. A leaf's is its
  // pod.
  int inside = -1;
  int pool = -1;  // switches of one pool are one where messages are spread evenly; -1: none others
};

struct FabricLink {
  int from = 0;
  int to = 0;
  BytesPerSecond capacity = 0;
  std::string sort = {};  // what all links of its kind are called: "spine", "global", "x"
  int order = 0;          // of several shortest ways, the lowest first
  int length = 1;
  int area = -1;  // hosts outside this switch's area pass it to those inside or back; -1: not known
};

struct Topology {
  std::string kind;
  std::vector<Switch> switches;
  std::vector<FabricLink> links;
  std::vector<int> plugs;  // by host (node * lanes + lane): its switch
  int lanes = 1;
  int parts = 1;  // into which a message between nodes is cut, all of one size
  bool hashed = false;
  std::uint64_t seed = 1;
  Seconds hop = 0;         // what a message takes longer for each link between two switches
  std::vector<int> nodes;  // by the job's node: the fabric's
  std::shared_ptr<const Topology>
      as_measured;                 // the fabric when collectives were measured; null: as now
  bool shared = false;             // with other jobs: their nodes fill links, too
  std::vector<std::string> names;  // of the fabric's nodes, where they have any
  std::string given;               // as the scenario has it: JSON

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

// A cable: a link each way.
void join(Topology& topology, const FabricLink& link);

// The job has all of the fabric's nodes, in their order.
void take_all_nodes(Topology& topology);

// Switches of a pool become one, and links side by side one of their sum.
Topology pooled(const Topology& topology);

// Returns the most of the job's nodes that share a leaf in every group of so many consecutive ones.
int nodes_at_a_leaf(const Topology& topology);

// By link: whether all hosts of the job together, of `port` bytes per second each, cannot fill it.
// Other jobs might.
std::vector<bool> never_full(const Topology& topology, BytesPerSecond port);

// The ways through a topology, found as they are asked for; not for several threads at once.
class Ways {
 public:
  explicit Ways(const Topology& topology);  // which must outlive it

  // Appends the links between two hosts, in order. Throws InputError where no way is left.
  void find(int from, int to, int part, std::vector<int>& links);

  // Returns how many links lie between two hosts.
  int hops(int from, int to);

 private:
  const std::vector<int>& distances_to(int target);
  const Topology& topology_;
  std::vector<std::vector<int>> leaving_;    // by switch: links
  std::vector<std::vector<int>> reaching_;   // likewise
  std::vector<std::vector<int>> distances_;  // by target, where it was asked for
  std::vector<int> choices_;
};

}  // namespace syncline::fabric
