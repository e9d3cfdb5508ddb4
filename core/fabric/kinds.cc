#include "core/fabric/kinds.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/random.h"

namespace syncline::fabric {
namespace {

std::string numbered(const std::string& word, int number) { return word + std::to_string(number); }

int product(const std::vector<int>& factors, std::size_t first, std::size_t last) {
  return std::accumulate(factors.begin() + static_cast<std::ptrdiff_t>(first),
                         factors.begin() + static_cast<std::ptrdiff_t>(last), 1,
                         std::multiplies<>());
}

Extent extent_of(const FatTree& tree) {
  Extent extent{1, 0, 0};
  for (const int down : tree.down) extent.nodes *= down;
  double subtrees = extent.nodes;
  double copies = 1;
  for (std::size_t level = 0; level < tree.down.size(); ++level) {
    extent.links += level == 0 ? 0 : subtrees * copies * tree.up[level] * tree.cables[level];
    subtrees /= tree.down[level];
    copies *= tree.up[level];
    extent.switches += subtrees * copies;
  }
  return extent;
}

void expect_tree(const FatTree& tree) {
  if (tree.down.empty() || tree.down.size() > kMaxLevels) {
    throw InputError("expected 1 to " + std::to_string(kMaxLevels) + " levels");
  }
  if (tree.up[0] != 1 || tree.cables[0] != 1) {
    throw InputError("a node is plugged into one leaf here; kind rail has several");
  }
  expect_buildable(extent_of(tree));
}

constexpr std::array<const char*, kMaxLevels> kLevels{"leaf", "spine", "core",
                                                      "top",  "fifth", "sixth"};

constexpr std::string_view kSimAi =
    "SimAI, astra-sim-alibabacloud/inputs/topo/gen_Topo_Template.py, its template of that name";
constexpr std::string_view kHpn =
    "Qian et al., Alibaba HPN (SIGCOMM 2024): 128 hosts a segment, two ports of 200 Gbit/s a NIC; "
    "SimAI, gen_Topo_Template.py, its template AlibabaHPN: 120 switches above, half of them a "
    "plane";
constexpr std::string_view kLlama3 =
    "Dubey et al., The Llama 3 Herd of Models (2024), 3.3.1: 16 GPUs a rack, 192 racks a pod, 8 "
    "pods at 1:7; 27 cables upwards come nearest";

// `link_gbps` is left out if cables are as fast as a NIC.
constexpr std::array kKnown{
    KnownFabric{"superpod-h100", "DGX SuperPOD: rails, 32 nodes a leaf, nothing oversubscribed",
                R"({"kind": "rail", "nodes_per_leaf": 32, "spines": 16, "links": 2})",
                "NVIDIA DGX SuperPOD Reference Architecture, DGX H100 (RA-11333-001): scalable "
                "units of 32 nodes; of four, 32 leaves, 16 spines and 1,024 cables between them"},
    KnownFabric{"spectrum-x", "rails, 64 nodes a leaf, 64 spines",
                R"({"kind": "rail", "nodes_per_leaf": 64, "spines": 64})", kSimAi},
    KnownFabric{"alibaba-hpn", "rails, two leaves a NIC (200 Gbit/s each), one plane",
                R"({"kind": "rail", "nodes_per_leaf": 128, "spines": 120, "tors": 2,
                    "link_gbps": 400})",
                kHpn},
    KnownFabric{"alibaba-hpn-dual-plane", "the same in two planes, which never meet",
                R"({"kind": "rail", "nodes_per_leaf": 128, "spines": 60, "tors": 2, "planes": 2,
                    "link_gbps": 400})",
                kHpn},
    KnownFabric{"dcn+", "all NICs of 8 nodes at one leaf, 8:1 oversubscribed",
                R"({"kind": "leaf_spine", "nodes_per_leaf": 8, "spines": 8, "link_gbps": 400})",
                kSimAi},
    KnownFabric{"leaf-spine-1:1", "Ethernet, 16 nodes a leaf, nothing oversubscribed",
                R"({"kind": "leaf_spine", "nodes_per_leaf": 16, "oversubscription": 1})",
                "a common shape, of no site in particular"},
    KnownFabric{"leaf-spine-2:1", "Ethernet, 16 nodes a leaf, half of their ports upwards",
                R"({"kind": "leaf_spine", "nodes_per_leaf": 16, "oversubscription": 2})",
                "a common shape, of no site in particular"},
    KnownFabric{"leaf-spine-4:1", "Ethernet, 16 nodes a leaf, a quarter of their ports upwards",
                R"({"kind": "leaf_spine", "nodes_per_leaf": 16, "oversubscription": 4})",
                "a common shape, of no site in particular"},
    KnownFabric{"llama3-24k", "three levels: racks of 2 nodes, pods of 192 racks, 7:1 above pods",
                R"({"kind": "fat_tree", "down": [2, 192, 8], "up": [1, 16, 27],
                    "link_gbps": [3200, 400, 400]})",
                kLlama3},
    KnownFabric{
        "slingshot", "dragonfly: 74 groups of 32 switches, a node's NICs at four of them",
        R"({"kind": "dragonfly", "groups": 74, "switches": 32, "hosts": 16,
                    "switches_per_node": 4, "links": 4, "link_gbps": 200})",
        "Lockwood, Frontier (glennklockwood.com): 128 nodes of 4 NICs a group, 16 endpoints "
        "a switch, 4 links between two groups; LUMI user guide, network: each of a node's "
        "endpoints at another switch"},
    KnownFabric{"tpu-v4-torus", "16 x 16 x 16 chips, six links of 400 Gbit/s each",
                R"({"kind": "torus", "sizes": [16, 16, 16], "link_gbps": 400})",
                "Jouppi et al., TPU v4 (ISCA 2023): 3D torus of 4,096 chips, 50 GB/s a link"},
    KnownFabric{"tpu-v5e-torus", "16 x 16 chips, four links of 400 Gbit/s each",
                R"({"kind": "torus", "sizes": [16, 16], "link_gbps": 400})",
                "Google Cloud TPU v5e: 2D torus of 256 chips, 1,600 Gbit/s a chip, 1.6 TB/s across "
                "the middle"}};

}  // namespace

void expect_buildable(const Extent& extent) {
  if (extent.nodes > kMaxNodes) throw InputError("more than 2^17 nodes");
  if (extent.switches > kMaxSwitches) {
    throw InputError("more than " + std::to_string(kMaxSwitches) + " switches");
  }
  if (extent.links > kMaxLinks) {
    throw InputError("more than " + std::to_string(kMaxLinks) + " links");
  }
}

// Builds the tree. A switch of level l is one of `copies` above the same subtree.
Topology fat_tree(const FatTree& tree) {
  expect_tree(tree);
  const std::size_t levels = tree.down.size();
  Topology topology;
  topology.kind = "fat_tree";
  std::vector<int> first;  // switch of each level
  for (std::size_t level = 0; level < levels; ++level) {
    first.push_back(static_cast<int>(topology.switches.size()));
    const int subtrees = product(tree.down, level + 1, levels);
    const int copies = product(tree.up, 0, level + 1);
    for (int each = 0; each < subtrees * copies; ++each) {
      const int stands_for = first.back() + each / copies * copies;
      topology.switches.push_back({numbered(kLevels.at(level), each), -1, stands_for});
    }
  }
  for (std::size_t level = 0; level + 1 < levels; ++level) {
    const int copies = product(tree.up, 0, level + 1);
    const int above = copies * tree.up[level + 1];
    for (int each = first[level]; each < first[level + 1]; ++each) {
      const int subtree = (each - first[level]) / copies;
      const int copy = (each - first[level]) % copies;
      const int parents = first[level + 1] + subtree / tree.down[level + 1] * above;
      topology.switches[at(each)].inside = parents;
      for (int up = 0; up < tree.up[level + 1]; ++up) {
        FabricLink link{each, parents + copy + up * copies, tree.speeds[level + 1]};
        link.sort = kLevels.at(level + 1);
        link.area = topology.switches[at(each)].pool;
        for (int cable = 0; cable < tree.cables[level + 1]; ++cable) join(topology, link);
      }
    }
  }
  const int hosts = product(tree.down, 0, levels);
  for (int host = 0; host < hosts; ++host) topology.plugs.push_back(host / tree.down[0]);
  take_all_nodes(topology);
  return topology;
}

// Builds the leaves of each block of nodes, one per rail and port. A plane's port is a lane.
Topology leaf_spine(const LeafSpine& shape) {
  Topology topology;
  topology.kind = shape.rails > 1 || shape.tors > 1 ? "rail" : "leaf_spine";
  topology.lanes = shape.rails * shape.tors;
  topology.parts = topology.lanes;
  const int blocks = (shape.nodes + shape.nodes_per_leaf - 1) / shape.nodes_per_leaf;
  const int leaves = blocks * topology.lanes;
  expect_buildable({1.0 * shape.nodes, 1.0 * leaves + 1.0 * shape.spines * shape.planes,
                    1.0 * leaves * shape.spines * shape.cables});
  for (int leaf = 0; leaf < leaves; ++leaf) {
    topology.switches.push_back({numbered("leaf", leaf)});
  }
  for (int spine = 0; spine < shape.spines * shape.planes; ++spine) {
    const int pool = leaves + spine / shape.spines * shape.spines;
    topology.switches.push_back({numbered("spine", spine), -1, pool});
  }
  for (int leaf = 0; leaf < leaves && blocks * topology.lanes > 1; ++leaf) {
    const int plane = leaf % topology.lanes % shape.tors % shape.planes;
    for (int spine = 0; spine < shape.spines; ++spine) {
      FabricLink link{leaf, leaves + plane * shape.spines + spine, shape.speed, "spine"};
      link.area = leaf;
      for (int cable = 0; cable < shape.cables; ++cable) join(topology, link);
    }
  }
  for (int node = 0; node < blocks * shape.nodes_per_leaf; ++node) {
    for (int lane = 0; lane < topology.lanes; ++lane) {
      topology.plugs.push_back(node / shape.nodes_per_leaf * topology.lanes + lane);
    }
  }
  take_all_nodes(topology);
  return topology;
}

// Builds groups. A group's cables leave its switches in turn, to the other groups in order (with a
// gap for its own), as in SimGrid.
Topology dragonfly(const Dragonfly& shape) {
  const double groups = shape.groups, switches = shape.switches;
  expect_buildable(
      {groups * switches * shape.hosts / shape.apart, groups * switches,
       groups * (groups - 1) / 2 * shape.cables + groups * switches * (switches - 1) / 2});
  Topology topology;
  topology.kind = "dragonfly";
  topology.lanes = shape.apart;
  topology.parts = shape.apart;
  for (int group = 0; group < shape.groups; ++group) {
    for (int each = 0; each < shape.switches; ++each) {
      topology.switches.push_back({"group" + numbered("", group) + ".switch" + numbered("", each)});
      // The first of them also gets the nodes of a few switches, lane by lane.
      for (int lane = 0; each % shape.apart == 0 && lane < shape.hosts * shape.apart; ++lane) {
        topology.plugs.push_back(group * shape.switches + each + lane % shape.apart);
      }
      for (int other = 0; other < each; ++other) {
        join(topology,
             {group * shape.switches + other, group * shape.switches + each, shape.local, "local"});
      }
    }
  }
  const int ports = shape.groups * shape.cables;
  const int each = (ports + shape.switches - 1) / shape.switches;  // of one switch
  const auto gateway = [&](int group, int other, int cable) {
    return group * shape.switches + (other * shape.cables + cable) / each;
  };
  // Longer than two hops inside groups, so that no message takes two of them.
  constexpr int kGlobalLength = 3;
  for (int group = 0; group < shape.groups; ++group) {
    for (int other = 0; other < group; ++other) {
      for (int cable = 0; cable < shape.cables; ++cable) {
        FabricLink link{gateway(group, other, cable), gateway(other, group, cable), shape.global,
                        "global"};
        link.length = kGlobalLength;
        join(topology, link);
      }
    }
  }
  take_all_nodes(topology);
  return topology;
}

Topology torus(const std::vector<int>& sizes, BytesPerSecond speed) {
  if (sizes.empty() || sizes.size() > kMaxLevels) {
    throw InputError("expected 1 to " + std::to_string(kMaxLevels) + " dimensions");
  }
  double places = 1;
  for (const int size : sizes) places *= size;
  expect_buildable({places, places, places * static_cast<double>(sizes.size())});
  Topology topology;
  topology.kind = "torus";
  const int nodes = product(sizes, 0, sizes.size());
  for (int node = 0; node < nodes; ++node) {
    std::string name = "node";
    int left = node;
    for (const int size : sizes) {
      name += (name == "node" ? "" : ".") + std::to_string(left % size);
      left /= size;
    }
    topology.switches.push_back({name});
    topology.plugs.push_back(node);
  }
  int step = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const int size = sizes[d];
    for (int node = 0; node < nodes; ++node) {
      const int place = node / step % size;
      const bool last = place == size - 1;
      if (size == 1 || (last && size == 2)) continue;  // two places have one cable
      const int next = last ? node - place * step : node + step;
      join(topology,
           {node, next, speed, std::string(1, static_cast<char>('x' + d)), static_cast<int>(d)});
    }
    step *= size;
  }
  take_all_nodes(topology);
  return topology;
}

std::vector<double> sum_upwards(const Topology& topology, std::vector<double> own) {
  std::vector<int> inside(own.size(), 0);  // by switch: number of those with sums still to come
  for (const Switch& each : topology.switches) {
    if (each.inside >= 0) ++inside[at(each.inside)];
  }
  std::vector<int> ready;
  for (std::size_t id = 0; id < own.size(); ++id) {
    if (inside[id] == 0) ready.push_back(static_cast<int>(id));
  }
  for (std::size_t next = 0; next < ready.size(); ++next) {
    const int above = topology.switches[at(ready[next])].inside;
    if (above < 0) continue;
    own[at(above)] += own[at(ready[next])];
    if (--inside[at(above)] == 0) ready.push_back(above);
  }
  if (ready.size() < own.size()) {
    throw InputError("switches are below each other in a circle");
  }
  return own;
}

int ways_at_a_tie(const Topology& topology) {
  if (topology.kind != "torus") return 1;
  // Links of a dimension, both directions of each, over its rings: two places have one cable.
  std::map<int, std::map<int, int>> next;  // by dimension and switch: the next switch
  for (std::size_t id = 0; id < topology.links.size(); id += 2) {
    const FabricLink& link = topology.links[id];
    next[link.order][link.from] = link.to;
  }
  for (const auto& [dimension, follows] : next) {
    int length = 0;
    for (int here = 0; follows.contains(here) && (length == 0 || here != 0); ++length) {
      here = follows.at(here);
    }
    if (length > 2 && length % 2 == 0) return 2;
  }
  return 1;
}

std::vector<int> place_nodes(const Topology& topology, int nodes, Placement how, std::uint64_t seed,
                             const std::vector<int>& taken) {
  std::vector<int> order(at(topology.all_nodes()));
  std::iota(order.begin(), order.end(), 0);
  const std::set<int> others(taken.begin(), taken.end());
  std::erase_if(order, [&](int node) { return others.contains(node); });
  if (how == Placement::kScattered) Random(seed, 0).shuffle(order);
  if (how == Placement::kSpread) {
    std::map<int, int> seen;  // nodes of each leaf so far
    std::vector<std::pair<int, int>> turns;
    for (const int node : order) {
      turns.emplace_back(seen[topology.plugs[at(node * topology.lanes)]]++, node);
    }
    std::sort(turns.begin(), turns.end());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = turns[i].second;
  }
  order.resize(at(nodes));
  return order;
}

int weaken(Topology& topology, const std::string& name, double share) {
  return weaken(topology, {{name, share}}).front();
}

std::vector<int> weaken(Topology& topology,
                        const std::vector<std::pair<std::string, double>>& shares) {
  std::unordered_map<std::string, std::vector<std::size_t>> named;
  for (std::size_t each = 0; each < shares.size(); ++each) {
    named[shares[each].first].push_back(each);
  }
  std::vector<int> counts(shares.size(), 0);
  for (FabricLink& link : topology.links) {
    const std::string& from = topology.switches[at(link.from)].name;
    const std::string& to = topology.switches[at(link.to)].name;
    std::set<std::size_t> mine;  // in order: the rounding of the product depends on it
    for (const std::string& name : {link.sort, from, to, from + "-" + to, to + "-" + from}) {
      if (const auto found = named.find(name); found != named.end()) {
        mine.insert(found->second.begin(), found->second.end());
      }
    }
    for (const std::size_t each : mine) {
      link.capacity *= shares[each].second;
      ++counts[each];
    }
  }
  return counts;
}

std::span<const KnownFabric> known_fabrics() { return kKnown; }

}  // namespace syncline::fabric
