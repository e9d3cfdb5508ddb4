#include "sim/flows.h"

#include <algorithm>
#include <unordered_map>

namespace syncline::sim {
namespace {

// Collectives with the same key put the same shares on the same links.
struct Key {
  collective::CollectiveKind kind;
  const collective::Algorithm* algorithm;
  collective::Groups groups;
  std::int64_t chunks;
  bool operator==(const Key&) const = default;
};

class RouteTable {
 public:
  explicit RouteTable(const collective::Network& network, FlowSet& set)
      : network_(network), set_(set) {}

  int find(int from, int to) {
    const std::uint64_t pair =
        static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint32_t>(to);
    const auto [it, fresh] = known_.try_emplace(pair, static_cast<int>(set_.routes.size()));
    if (fresh) {
      Route route;
      network_.route(from, to, route);
      set_.routes.push_back(std::move(route));
    }
    return it->second;
  }

 private:
  const collective::Network& network_;
  FlowSet& set_;
  std::unordered_map<std::uint64_t, int> known_;
};

FlowPlan flows_of(const collective::Collective& collective, RouteTable& routes) {
  FlowPlan plan;
  const collective::Groups& groups = collective.groups;
  const auto stages =
      collective.algorithm->stages(collective.kind, groups.size, collective.elements);
  for (const auto& stage : stages) {
    FlowStage& out = plan.emplace_back();
    const auto repeat = static_cast<double>(stage.repeat);
    for (int g = 0; g < groups.count; ++g) {
      for (const auto& edge : stage.edges) {
        const int from = groups.rank(g, edge.from);
        const int to = groups.rank(g, edge.to);
        out.push_back({routes.find(from, to), edge.fraction * repeat});
      }
    }
  }
  return plan;
}

}  // namespace

FlowSet merged_flows(const plan::Plan& plan, const collective::Network& network) {
  FlowSet set;
  for (int id = 0; id < network.link_count(); ++id) {
    set.links.push_back({network.link(id).capacity, network.link(id).per_flow});
  }
  RouteTable routes(network, set);
  std::vector<Key> keys;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr) {
      set.plan_of_op.push_back(-1);
      continue;
    }
    const Key key{collective->kind, collective->algorithm, collective->groups,
                  collective->algorithm->chunks(collective->kind, collective->groups.size,
                                                collective->elements)};
    const auto it = std::find(keys.begin(), keys.end(), key);
    set.plan_of_op.push_back(static_cast<int>(it - keys.begin()));
    if (it != keys.end()) continue;
    keys.push_back(key);
    set.plans.push_back(flows_of(*collective, routes));
  }
  return set;
}

}  // namespace syncline::sim
