#include "core/collective/network.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace syncline::collective {

Network::Network(const Cluster& cluster) : ranks_(cluster.ranks()) {
  const int ranks = ranks_;
  int unit = 1;
  for (std::size_t t = 0; t < cluster.tiers.size(); ++t) {
    const Tier& tier = cluster.tiers[t];
    const int id = static_cast<int>(t);
    Level level{tier.latency, unit, tier.span, link_count(), -1, -1};
    for (int port = 0; port < ranks / unit; ++port) {
      links_.push_back({tier.bandwidth, false, id, Link::Part::kUp});
      links_.push_back({tier.bandwidth, false, id, Link::Part::kDown});
    }
    if (tier.oversubscription > 1) {
      level.first_backbone = link_count();
      const int ports = tier.span / unit;
      const double capacity = tier.bandwidth * ports / tier.oversubscription;
      links_.insert(links_.end(), static_cast<std::size_t>(ranks / tier.span),
                    {capacity, false, id, Link::Part::kBackbone});
    }
    if (std::isfinite(tier.flow_cap)) {
      level.cap = link_count();
      links_.push_back({tier.flow_cap, true, id, Link::Part::kUp});
    }
    tiers_.push_back(level);
    unit = tier.span;
  }
}

Seconds Network::fastest() const {
  Seconds least = tiers_.empty() ? 0 : tiers_.front().latency;
  for (const auto& tier : tiers_) least = std::min(least, tier.latency);
  return least;
}

int Network::crossing(int from, int to) const {
  int tier = 0;
  while (from / tiers_[static_cast<std::size_t>(tier)].span !=
         to / tiers_[static_cast<std::size_t>(tier)].span) {
    ++tier;
  }
  return tier;
}

void Network::route(int from, int to, std::vector<int>& links) const {
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
}

}  // namespace syncline::collective
