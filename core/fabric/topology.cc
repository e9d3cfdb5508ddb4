#include "core/fabric/topology.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/fabric/kinds.h"

namespace syncline::fabric {
namespace {

constexpr int kFar = std::numeric_limits<int>::max();

}  // namespace

void join(Topology& topology, const FabricLink& link) {
  topology.links.insert(topology.links.end(), 2, link);
  std::swap(topology.links.back().from, topology.links.back().to);
}

void take_all_nodes(Topology& topology) {
  topology.nodes.resize(at(topology.all_nodes()));
  std::iota(topology.nodes.begin(), topology.nodes.end(), 0);
}

Topology merge_pools(const Topology& topology) {
  Topology out = topology;
  out.switches.clear();
  out.links.clear();
  std::map<int, int> pools;
  std::vector<int> place;  // by switch: index in the result
  for (const Switch& each : topology.switches) {
    const int next = static_cast<int>(out.switches.size());
    const int mine = each.pool < 0 ? next : pools.try_emplace(each.pool, next).first->second;
    place.push_back(mine);
    if (mine == next) {
      out.switches.push_back(each);
      continue;
    }
    std::string& name = out.switches[at(mine)].name;  // "spine0..7"
    const std::size_t digits = each.name.find_last_not_of("0123456789") + 1;
    name = name.substr(0, name.find("..")) + ".." + each.name.substr(digits);
  }
  for (Switch& each : out.switches) {
    if (each.inside >= 0) each.inside = place[at(each.inside)];
  }
  for (int& plug : out.plugs) plug = place[at(plug)];
  // Each link gets an equal part of the traffic, so the narrowest determines their sum. Failed
  // links do not count.
  struct Trunk {
    std::size_t link = 0;
    int working = 0;
  };
  std::map<std::tuple<int, int, int>, Trunk> known;
  for (FabricLink link : topology.links) {
    link.from = place[at(link.from)];
    link.to = place[at(link.to)];
    if (link.area >= 0) link.area = place[at(link.area)];
    const auto [it, fresh] =
        known.try_emplace({link.from, link.to, link.order}, Trunk{out.links.size(), 0});
    auto& [id, working] = it->second;
    if (fresh) out.links.push_back(link);
    if (link.capacity <= 0) continue;
    BytesPerSecond& each = out.links[id].capacity;  // minimum, until all links are seen
    each = working == 0 ? link.capacity : std::min(each, link.capacity);
    ++working;
  }
  for (const auto& [ends, trunk] : known) out.links[trunk.link].capacity *= trunk.working;
  return out;
}

int nodes_at_a_leaf(const Topology& topology) {
  int common = 0;
  int run = 0;  // consecutive nodes at the last leaf
  int before = -1;
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    const int leaf = topology.plugs[at(topology.host(static_cast<int>(node), 0))];
    if (leaf != before) common = std::gcd(common, std::exchange(run, 0));
    before = leaf;
    ++run;
  }
  return std::gcd(common, run);
}

std::vector<bool> never_full(const Topology& topology, BytesPerSecond port) {
  std::vector<double> hosts(topology.switches.size(), 0);  // of the job, by area
  for (const int node : topology.nodes) {
    for (int lane = 0; lane < topology.lanes; ++lane) {
      ++hosts[at(topology.plugs[at(node * topology.lanes + lane)])];
    }
  }
  hosts = sum_upwards(topology, std::move(hosts));
  std::vector<bool> never;
  for (const FabricLink& link : topology.links) {
    constexpr double kRounding = 1e-9;
    never.push_back(!topology.shared && link.area >= 0 &&
                    link.capacity * (1 + kRounding) >= hosts[at(link.area)] * port);
  }
  return never;
}

Ways::Ways(const Topology& topology)
    : topology_(topology),
      leaving_(topology.switches.size()),
      reaching_(topology.switches.size()),
      distances_(topology.switches.size()) {
  for (std::size_t id = 0; id < topology.links.size(); ++id) {
    const FabricLink& link = topology.links[id];
    if (link.capacity <= 0) continue;  // it has failed
    leaving_[at(link.from)].push_back(static_cast<int>(id));
    reaching_[at(link.to)].push_back(static_cast<int>(id));
  }
}

const std::vector<int>& Ways::distances_to(int target) {
  std::vector<int>& distances = distances_[at(target)];
  if (!distances.empty()) return distances;
  distances.assign(topology_.switches.size(), kFar);
  using Reached = std::pair<int, int>;  // distance, switch
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> next;
  next.emplace(distances[at(target)] = 0, target);
  while (!next.empty()) {
    const auto [distance, here] = next.top();
    next.pop();
    if (distance > distances[at(here)]) continue;
    for (const int id : reaching_[at(here)]) {
      const FabricLink& link = topology_.links[at(id)];
      if (distance + link.length >= distances[at(link.from)]) continue;
      next.emplace(distances[at(link.from)] = distance + link.length, link.from);
    }
  }
  return distances;
}

int Ways::hops(int from, int to) {
  std::vector<int> links;
  find(from, to, 0, links);
  return static_cast<int>(links.size());
}

void Ways::find(int from, int to, int part, std::vector<int>& links) {
  int here = topology_.plugs[at(from)];
  const int target = topology_.plugs[at(to)];
  if (here == target) return;
  const std::vector<int>& distances = distances_to(target);
  if (distances[at(here)] == kFar) {
    throw InputError("cluster.fabric: no way is left from " + topology_.switches[at(here)].name +
                     " to " + topology_.switches[at(target)].name);
  }
  // Each switch chooses by its own hash of the constant properties of a flow.
  const std::uint64_t flow = (static_cast<std::uint64_t>(from) << 40U) ^
                             (static_cast<std::uint64_t>(to) << 16U) ^
                             static_cast<std::uint64_t>(part);
  while (here != target) {
    int order = kFar;
    choices_.clear();
    for (const int id : leaving_[at(here)]) {
      const FabricLink& link = topology_.links[at(id)];
      const bool nearer = distances[at(link.to)] < kFar &&
                          distances[at(link.to)] + link.length == distances[at(here)];
      if (!nearer || link.order > order) continue;
      if (link.order < order) choices_.clear();
      order = link.order;
      choices_.push_back(id);
    }
    const std::size_t turn =
        topology_.hashed
            ? Random(topology_.seed ^ flow, static_cast<std::uint64_t>(here)).below(choices_.size())
            : at(from + to + part) % choices_.size();
    links.push_back(choices_[turn]);
    here = topology_.links[at(choices_[turn])].to;
  }
}

}  // namespace syncline::fabric
