// Fabrics by kind. Bytes per second of one cable, each direction. Throws InputError without a place
// for impossible shapes. Sources: XGFT(h; m; w) of Oehring et al. 1995 as SimGrid writes it; Kim et
// al., Technology-Driven, Highly-Scalable Dragonfly Topology (2008); dimension-ordered tori.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fabric/topology.h"

namespace syncline::fabric {

// Limits of a fabric, and its extent, known before it is built. expect_buildable throws InputError
// above the limits.
inline constexpr int kMaxNodes = 1 << 17;
inline constexpr int kMaxSwitches = 1 << 13;  // ways are found for all pairs of them
inline constexpr int kMaxLinks = 1 << 20;
inline constexpr std::size_t kMaxLevels = 6;  // of a tree; dimensions of a torus
struct Extent {
  double nodes = 0;
  double switches = 0;
  double links = 0;  // cables
};
void expect_buildable(const Extent& extent);

// Numbers by level, from the leaves: elements below a switch, switches above an element, cables.
struct FatTree {
  std::vector<int> down;
  std::vector<int> up;
  std::vector<int> cables;
  std::vector<BytesPerSecond> speeds;  // by level; the first, of the hosts' ports, is not used
};
Topology fat_tree(const FatTree& tree);

struct LeafSpine {
  int nodes = 1;
  int nodes_per_leaf = 1;
  int spines = 1;  // of a plane
  int cables = 1;  // from a leaf to a spine
  BytesPerSecond speed = 0;
  int rails = 1;   // NICs of a node, each at the leaves of its own rail
  int tors = 1;    // leaves with a port of a NIC
  int planes = 1;  // 2: the leaves of a NIC's ports share no spines
};
Topology leaf_spine(const LeafSpine& shape);

struct Dragonfly {
  int groups = 1;
  int switches = 1;  // of a group, each joined to all others
  int hosts = 1;     // nodes at a switch
  int cables = 1;    // between two groups
  BytesPerSecond local = 0;
  BytesPerSecond global = 0;
  int apart = 1;  // neighbouring switches that share a node's NICs
};
Topology dragonfly(const Dragonfly& shape);

// Returns a torus with one switch per node.
Topology torus(const std::vector<int>& sizes, BytesPerSecond speed);

// Returns the parts of a message for an even use of all shortest ways of a torus: two if a
// dimension is even, because the opposite position is equally far in both directions.
int ways_at_a_tie(const Topology& topology);

// Sums `own`, a number for each switch, over each switch and all switches inside its area. Throws
// InputError if areas contain each other in a circle.
std::vector<double> sum_upwards(const Topology& topology, std::vector<double> own);

// Choice of a job's nodes on the fabric: the first ones, leaf by leaf in turn, or drawn.
enum class Placement { kPacked, kSpread, kScattered };
std::vector<int> place_nodes(const Topology& topology, int nodes, Placement how, std::uint64_t seed,
                             const std::vector<int>& taken = {});  // by other jobs

// Multiplies the capacity of links of a name: one link ("leaf3-spine1") in both directions, a sort
// ("spine"), or all of a switch. Returns their number.
int weaken(Topology& topology, const std::string& name, double share);
// Multiplies capacities for several names, in order, in one pass; returns the links by name.
std::vector<int> weaken(Topology& topology,
                        const std::vector<std::pair<std::string, double>>& shares);

// Fabrics by name, as "fabric" has them in a scenario.

struct KnownFabric {
  std::string_view name;
  std::string_view summary;
  std::string_view keys;  // the object that the name abbreviates, JSON
  std::string_view source;
};

std::span<const KnownFabric> known_fabrics();

}  // namespace syncline::fabric
