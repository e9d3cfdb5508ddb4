#include "core/collective/network.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdlib>

namespace syncline::collective {

Network::Network(const Cluster& cluster)
    : ranks_(cluster.ranks()), gpus_per_node_(cluster.gpus_per_node) {
  int unit = 1;
  for (std::size_t t = 0; t < cluster.tiers.size(); ++t) {
    const Tier& tier = cluster.tiers[t];
    const int id = static_cast<int>(t);
    Level level{tier.latency, unit, tier.span, link_count(), -1, -1};
    for (int port = 0; port < ranks_ / unit; ++port) {
      links_.push_back({tier.upload(), false, id});
      links_.push_back({tier.bandwidth, false, id});
    }
    if (tier.oversubscription > 1) {
      level.first_backbone = link_count();
      const int ports = tier.span / unit;
      const double capacity = tier.bandwidth * ports / tier.oversubscription;
      links_.insert(links_.end(), static_cast<std::size_t>(ranks_ / tier.span),
                    {capacity, false, id});
    }
    if (std::isfinite(tier.flow_cap)) {
      level.cap = link_count();
      links_.push_back({tier.flow_cap, true, id});
    }
    tiers_.push_back(level);
    unit = tier.span;
  }
  if (cluster.topology != nullptr && cluster.nodes > 1) add_fabric(cluster);
}

// Adds the lanes of the nodes' NICs, and the links of the fabric that can be full.
void Network::add_fabric(const Cluster& cluster) {
  topology_ = cluster.topology;
  const fabric::Topology& topology = *topology_;
  fabric_tier_ = cluster.gpus_per_node > 1 ? 1 : 0;
  const Tier& tier = cluster.tiers[static_cast<std::size_t>(fabric_tier_)];
  const BytesPerSecond port = tier.bandwidth;
  const std::vector<bool> never_full =
      fabric::never_full(topology, std::max(port, tier.upload()) / topology.lanes);
  if (topology.hop > 0) hops_ = std::make_shared<fabric::Ways>(topology);
  if (topology.lanes > 1) {
    parts_ = topology.parts;
    first_lane_ = link_count();
    for (int lane = 0; lane < cluster.nodes * topology.lanes; ++lane) {
      links_.push_back({tier.upload() / topology.lanes, false, fabric_tier_});
      links_.push_back({port / topology.lanes, false, fabric_tier_});
    }
  }
  if (std::ranges::find(never_full, false) == never_full.end()) return;
  parts_ = topology.parts;
  first_in_fabric_ = link_count();
  link_of_.assign(topology.links.size(), -1);
  for (std::size_t id = 0; id < topology.links.size(); ++id) {
    if (never_full[id]) continue;
    link_of_[id] = link_count();
    kept_.push_back(id);
    links_.push_back({topology.links[id].capacity, false, fabric_tier_});
  }
  ways_ = std::make_shared<fabric::Ways>(topology);
}

Seconds Network::fastest() const {
  Seconds least = tiers_.empty() ? 0 : tiers_.front().latency;
  for (const auto& tier : tiers_) least = std::min(least, tier.latency);
  return least;
}

int Network::crossing(int from, int to) const {
  const auto crossed = std::ranges::find_if(
      tiers_, [&](const Level& tier) { return from / tier.span == to / tier.span; });
  return static_cast<int>(crossed - tiers_.begin());
}

Seconds Network::latency(int from, int to) const {
  const int tier = crossing(from, to);
  const Seconds least = tiers_[static_cast<std::size_t>(tier)].latency;
  if (hops_ == nullptr || tier < fabric_tier_) return least;
  const int hops = hops_->hops(topology_->host(from / gpus_per_node_, 0),
                               topology_->host(to / gpus_per_node_, 0));
  return least + hops * topology_->hop;
}

// Returns the lane of a part. Each GPU has its share of the node's lanes, possibly a fraction. All
// parts together spread evenly over the lanes of the group's members on the node.
int Network::lane_of(const Groups& groups, int rank, int part) const {
  const int step = std::max(1, std::abs(groups.member_step));
  const int local = rank % gpus_per_node_;
  const int first = local % step;
  const int members = (gpus_per_node_ - first + step - 1) / step;
  const std::int64_t each = 2 * parts_;  // of a member's share: a part's middle decides
  const std::int64_t at = (2 * part + 1) * members;
  const std::int64_t gpu = first + at / each * step;
  return static_cast<int>((gpu * each + at % each) * topology_->lanes / (each * gpus_per_node_));
}

void Network::route(const Groups& groups, int from, int to, int part,
                    std::vector<int>& links) const {
  assert(from != to && "a rank does not send to itself");
  const int top = crossing(from, to);
  for (int t = 0; t <= top; ++t) {
    const Level& level = tiers_[static_cast<std::size_t>(t)];
    links.push_back(level.first_port + 2 * (from / level.unit));
    links.push_back(level.first_port + 2 * (to / level.unit) + 1);
    if (level.cap >= 0) links.push_back(level.cap);
    if (t == top && level.first_backbone >= 0) {
      links.push_back(level.first_backbone + from / level.span);
    }
  }
  if (top < fabric_tier_) return;
  const int node = from / gpus_per_node_;
  const int other = to / gpus_per_node_;
  const int lanes = topology_->lanes;
  const int lane = lanes > 1 ? lane_of(groups, from, part) : 0;
  const int awaits = lanes > 1 ? lane_of(groups, to, part) : 0;
  if (lanes > 1) {
    links.push_back(first_lane_ + 2 * (node * lanes + lane));
    links.push_back(first_lane_ + 2 * (other * lanes + awaits) + 1);
  }
  if (ways_ == nullptr) return;
  std::vector<int> way;
  ways_->find(topology_->host(node, lane), topology_->host(other, awaits), part, way);
  for (const int id : way) {
    const int link = link_of_[static_cast<std::size_t>(id)];
    if (link >= 0) links.push_back(link);
  }
}

void Network::route(const Groups& groups, int from, int to, std::vector<int>& links) const {
  const bool one_way = parts(from, to) == 1;
  for (int part = 0; part < parts_; ++part) route(groups, from, to, one_way ? 0 : part, links);
}

}  // namespace syncline::collective
