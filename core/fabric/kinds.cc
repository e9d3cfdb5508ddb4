#include "core/fabric/kinds.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/random.h"

namespace syncline::fabric {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

void join(Topology& topology, const FabricLink& link) {
  topology.links.push_back(link);
  topology.links.push_back(link);
  std::swap(topology.links.back().from, topology.links.back().to);
}

std::string numbered(const std::string& word, int number) { return word + std::to_string(number); }

std::vector<int> first_nodes(int nodes) {
  std::vector<int> list(at(nodes));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

int product(const std::vector<int>& factors, std::size_t first, std::size_t last) {
  return std::accumulate(factors.begin() + static_cast<std::ptrdiff_t>(first),
                         factors.begin() + static_cast<std::ptrdiff_t>(last), 1,
                         std::multiplies<>());
}

constexpr std::array<const char*, 6> kLevels{"leaf", "spine", "core", "top", "fifth", "sixth"};

}  // namespace

// A switch of level l is one of `copies` that stand above the same subtree.
Topology fat_tree(const FatTree& tree) {
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
  topology.nodes = first_nodes(hosts);
  return topology;
}

// Leaves of a block of nodes: one for each rail and port. Ports of two planes are lanes of a node.
Topology leaf_spine(const LeafSpine& shape) {
  Topology topology;
  topology.kind = shape.rails > 1 || shape.tors > 1 ? "rail" : "leaf_spine";
  topology.lanes = shape.rails * shape.tors;
  topology.parts = topology.lanes;
  const int blocks = (shape.nodes + shape.nodes_per_leaf - 1) / shape.nodes_per_leaf;
  const int leaves = blocks * topology.lanes;
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
  topology.nodes = first_nodes(topology.all_nodes());
  return topology;
}

// The cables of a group go out of its switches one after the other, to the groups in turn (a place
// is left for its own), as in SimGrid.
Topology dragonfly(const Dragonfly& shape) {
  Topology topology;
  topology.kind = "dragonfly";
  topology.lanes = shape.apart;
  topology.parts = shape.apart;
  for (int group = 0; group < shape.groups; ++group) {
    for (int each = 0; each < shape.switches; ++each) {
      topology.switches.push_back({"group" + numbered("", group) + ".switch" + numbered("", each)});
      // With the first of them come the nodes of a few switches, lane by lane.
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
  const int each = (ports + shape.switches - 1) / shape.switches;  // of a switch
  const auto gateway = [&](int group, int other, int cable) {
    return group * shape.switches + (other * shape.cables + cable) / each;
  };
  // Longer than two hops inside groups: no message takes two of them.
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
  topology.nodes = first_nodes(topology.all_nodes());
  return topology;
}

Topology torus(const std::vector<int>& sizes, BytesPerSecond speed) {
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
      if (size == 1 || (last && size == 2)) continue;  // of two, one cable joins them
      const int next = last ? node - place * step : node + step;
      join(topology,
           {node, next, speed, std::string(1, static_cast<char>('x' + d)), static_cast<int>(d)});
    }
    step *= size;
  }
  topology.nodes = first_nodes(nodes);
  return topology;
}

std::vector<int> placed(const Topology& topology, int nodes, Placement how, std::uint64_t seed,
                        const std::vector<int>& taken) {
  std::vector<int> order = first_nodes(topology.all_nodes());
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
  int count = 0;
  for (FabricLink& link : topology.links) {
    const std::string& from = topology.switches[at(link.from)].name;
    const std::string& to = topology.switches[at(link.to)].name;
    if (name != link.sort && name != from && name != to && name != from + "-" + to &&
        name != to + "-" + from) {
      continue;
    }
    link.capacity *= share;
    ++count;
  }
  return count;
}

}  // namespace syncline::fabric
