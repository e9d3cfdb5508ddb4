#include "core/sim/flows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "core/base/index.h"

namespace syncline::sim {
namespace {

// Collectives with the same key use the same routes,
struct PatternKey {
  collective::CollectiveKind kind;
  const collective::Algorithm* algorithm;
  collective::Groups groups;
  bool operator==(const PatternKey&) const = default;
};

// and those with the same chunks the same shares at the same times.
struct PayloadKey {
  std::size_t pattern;
  std::int64_t chunks;
  bool at_once;
  bool operator==(const PayloadKey&) const = default;
};

// Returns the index of the key in the known ones; adds it if it is new.
template <typename Key>
std::size_t place_of(const Key& key, std::vector<Key>& known) {
  const auto it = std::ranges::find(known, key);
  const std::size_t at = index(it - known.begin());
  if (it == known.end()) known.push_back(key);
  return at;
}

Traffic::RouteSets routes_of(const collective::Collective& collective,
                             const collective::Network& network, RouteTable& routes) {
  Traffic::RouteSets sets;
  const collective::Groups& groups = collective.groups;
  for (const auto& edges : collective.algorithm->edges(collective.kind, groups.size)) {
    auto& out = sets.emplace_back();
    for (int g = 0; g < groups.count; ++g) {
      for (const auto& edge : edges) {
        const int from = groups.rank(g, edge.from);
        const int to = groups.rank(g, edge.to);
        const int first = routes.find(groups, from, to);
        const bool one_way = network.parts(from, to) == 1;
        for (int part = 0; part < network.parts(); ++part) {
          out.push_back(first + (one_way ? 0 : part));
        }
      }
    }
  }
  return sets;
}

}  // namespace

std::vector<FlowLink> links_of(const collective::Network& network) {
  std::vector<FlowLink> links;
  for (int id = 0; id < network.link_count(); ++id) {
    links.push_back({network.link(id).capacity, network.link(id).per_flow});
  }
  return links;
}

int RouteTable::find(const collective::Groups& groups, int from, int to) {
  const std::uint64_t pair =
      static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint32_t>(to);
  const auto [it, fresh] =
      known_[groups.member_step].try_emplace(pair, static_cast<int>(routes.size()));
  for (int part = 0; fresh && part < network_.parts(from, to); ++part) {
    Route& route = routes.emplace_back();
    network_.route(groups, from, to, part, route);
    if (!with_ranks_) continue;
    for (int& link : route) link += network_.ranks();
    route.insert(route.begin(), {from, to});
  }
  return it->second;
}

Traffic traffic_of(const plan::Plan& plan, const collective::Network& network,
                   collective::CostCache& cache) {
  Traffic traffic;
  traffic.links = links_of(network);
  RouteTable routes(network);
  std::vector<PayloadKey> payloads;
  std::vector<PatternKey> patterns;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr) {
      traffic.payload_of_op.push_back(-1);
      continue;
    }
    const PatternKey pattern{collective->kind, collective->algorithm, collective->groups};
    const std::size_t at = place_of(pattern, patterns);
    if (at == traffic.patterns.size())
      traffic.patterns.push_back(routes_of(*collective, network, routes));
    const int ranks = collective->groups.size;
    const std::int64_t elements = collective->elements;
    auto stages = collective->algorithm->stages(collective->kind, ranks, elements);
    const bool whole = cache.cost(*collective).stages.size() < stages.size();
    const PayloadKey key{at, collective->algorithm->chunks(collective->kind, ranks, elements),
                         whole};
    const std::size_t payload = place_of(key, payloads);
    traffic.payload_of_op.push_back(static_cast<int>(payload));
    if (payload < traffic.payloads.size()) continue;
    traffic.payloads.push_back({at, std::move(stages), whole, network.parts()});
  }
  traffic.routes = std::move(routes.routes);
  return traffic;
}

Traffic join_traffic(std::vector<Traffic> jobs, const std::vector<collective::Network>& networks) {
  Traffic all = std::move(jobs.front());
  if (jobs.size() == 1) return all;
  const fabric::FabricLink* first = networks.front().topology()->links.data();
  std::map<std::ptrdiff_t, int> in_fabric;  // by link there: index in `all`
  for (int id = 0; id < networks.front().link_count(); ++id) {
    const fabric::FabricLink* link = networks.front().in_fabric(id);
    if (link != nullptr) in_fabric[link - first] = id;
  }
  for (std::size_t job = 1; job < jobs.size(); ++job) {
    Traffic& own = jobs[job];
    std::vector<int> moved;
    for (int id = 0; id < networks[job].link_count(); ++id) {
      const fabric::FabricLink* link = networks[job].in_fabric(id);
      const bool port = link == nullptr;
      moved.push_back(port ? static_cast<int>(all.links.size())
                           : in_fabric.at(link - networks[job].topology()->links.data()));
      if (port) all.links.push_back(own.links[index(id)]);
    }
    const int routes = static_cast<int>(all.routes.size());
    for (Route& route : own.routes) {
      for (int& link : route) link = moved[index(link)];
      all.routes.push_back(std::move(route));
    }
    const std::size_t patterns = all.patterns.size();
    for (Traffic::RouteSets& sets : own.patterns) {
      for (std::vector<int>& set : sets) {
        for (int& route : set) route += routes;
      }
      all.patterns.push_back(std::move(sets));
    }
    const int payloads = static_cast<int>(all.payloads.size());
    for (Traffic::FlowBytes& payload : own.payloads) {
      payload.pattern += patterns;
      all.payloads.push_back(std::move(payload));
    }
    for (const int payload : own.payload_of_op) {
      all.payload_of_op.push_back(payload < 0 ? -1 : payload + payloads);
    }
  }
  return all;
}

FlowPlan at_once(const FlowPlan& plan) {
  // SimGrid's work grows as the square of the flows: 256 along each of 62 routes, three collectives
  // at a time, took minutes per step, 16 take 2 s.
  constexpr double kMaxPerRoute = 256;
  constexpr double kMinPerRoute = 8;
  constexpr double kMaxFlows = 1024;
  std::map<int, double> shares;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& stage : plan) {
    for (const auto& flow : stage) {
      shares[flow.route] += flow.fraction;
      least = std::min(least, flow.fraction);
    }
  }
  FlowPlan whole(1);
  const auto routes = static_cast<double>(std::max<std::size_t>(1, shares.size()));
  const double most = std::clamp(std::floor(kMaxFlows / routes), kMinPerRoute, kMaxPerRoute);
  for (const auto& [route, share] : shares) {
    const double flows = std::clamp(std::round(share / least), 1.0, most);
    whole.front().insert(whole.front().end(), static_cast<std::size_t>(flows),
                         {route, share / flows});
  }
  return whole;
}

FlowSet every_flow(const Traffic& traffic) {
  FlowSet set{traffic, {}, traffic.payload_of_op};
  for (const auto& payload : traffic.payloads) {
    FlowPlan& plan = set.plans.emplace_back();
    for (const auto& stage : payload.stages) {
      FlowStage& flows = plan.emplace_back();
      const double fraction = stage.fraction * static_cast<double>(stage.repeat) / payload.parts;
      for (std::size_t s = stage.first; s < stage.last; ++s) {
        for (const int route : traffic.patterns[payload.pattern][s]) {
          flows.push_back({route, fraction});
        }
      }
    }
    if (payload.at_once) plan = at_once(plan);
  }
  return set;
}

namespace {

// The distinct costs of a plan's collectives, and the index of each operation's (-1: none).
struct Costs {
  std::vector<const collective::CollectiveCost*> all;
  std::vector<int> of_op;
};

Costs costs_of(const plan::Plan& plan, collective::CostCache& cache) {
  Costs costs;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    costs.of_op.push_back(collective == nullptr
                              ? -1
                              : static_cast<int>(place_of(&cache.cost(*collective), costs.all)));
  }
  return costs;
}

}  // namespace

FlowSet busiest_flows(const plan::Plan& plan, collective::CostCache& cache) {
  FlowSet set;
  std::vector<BytesPerSecond> capacities;
  Costs costs = costs_of(plan, cache);
  set.plan_of_op = std::move(costs.of_op);
  for (const auto* cost : costs.all) {
    FlowPlan& flows = set.plans.emplace_back();
    for (const auto& stage : cost->stages) {
      const auto busiest =
          std::ranges::max_element(stage.links, {}, &std::pair<int, double>::second);
      const BytesPerSecond capacity = cost->footprint->capacity(busiest->first);
      // The cost's scale is applied when the flow starts, as for all flows.
      const double fraction = stage.seconds_per_byte / cost->scale * capacity;
      flows.push_back({{static_cast<int>(place_of(capacity, capacities)), fraction}});
    }
  }
  for (std::size_t link = 0; link < capacities.size(); ++link) {
    set.links.push_back({capacities[link], false});
    set.routes.push_back({static_cast<int>(link)});
  }
  return set;
}

namespace {

// A link, and the time for which each stage of each cost uses it, per byte of payload.
struct LinkWork {
  BytesPerSecond capacity = 0;
  std::vector<double> seconds;  // by cost and stage
  double sum = 0;

  bool outdoes(const LinkWork& other) const {
    return capacity <= other.capacity &&
           std::ranges::equal(seconds, other.seconds, std::greater_equal{});
  }
};

std::vector<LinkWork> works_of(const std::vector<const collective::CollectiveCost*>& costs) {
  const auto joint = collective::joint_kinds(costs);
  std::vector<LinkWork> works(joint.size());
  for (std::size_t p = 0; p < costs.size(); ++p) {
    const collective::Footprint& footprint = *costs[p]->footprint;
    for (const auto& stage : costs[p]->stages) {
      std::vector<double> by_kind(footprint.link_kinds(), 0.0);
      for (const auto& [kind, busy] : stage.links) by_kind[index(kind)] = busy;
      for (std::size_t link = 0; link < works.size(); ++link) {
        const int kind = joint[link][p];
        const double busy = kind < 0 ? 0 : by_kind[index(kind)];
        if (kind >= 0) works[link].capacity = footprint.capacity(kind);
        works[link].seconds.push_back(busy);
        works[link].sum += busy;
      }
    }
  }
  return works;
}

// Returns the links that no other link outdoes.
std::vector<LinkWork> heaviest(std::vector<LinkWork> works) {
  std::ranges::stable_sort(works, std::greater{}, &LinkWork::sum);
  std::vector<LinkWork> kept;
  for (LinkWork& work : works) {
    const bool outdone =
        std::ranges::any_of(kept, [&](const LinkWork& other) { return other.outdoes(work); });
    if (!outdone) kept.push_back(std::move(work));
  }
  return kept;
}

// Adds the flows of every stage, link by link.
class HeaviestFlows {
 public:
  HeaviestFlows(const std::vector<const collective::CollectiveCost*>& costs, FlowSet& set)
      : costs_(costs), set_(set) {
    for (const auto* cost : costs) set.plans.emplace_back(cost->stages.size());
  }

  void add(const LinkWork& work) {
    const int link = static_cast<int>(set_.links.size());
    set_.links.push_back({work.capacity, false});
    const std::vector<double> messages = messages_on(work);
    const double most = std::ranges::max(messages);
    std::size_t at = 0;
    for (std::size_t p = 0; p < costs_.size(); ++p) {
      for (std::size_t s = 0; s < costs_[p]->stages.size(); ++s, ++at) {
        if (work.seconds[at] <= 0) continue;
        const double flows =
            std::max(1.0, std::round(messages[at] * std::min(1.0, kMaxFlows / most)));
        const double rate = costs_[p]->stages[s].flow_rate * messages[at] / flows;
        const double all = work.seconds[at] * work.capacity / costs_[p]->scale;
        FlowStage& stage = set_.plans[p][s];
        stage.insert(stage.end(), static_cast<std::size_t>(flows),
                     {route(link, rate), all / flows});
      }
    }
  }

 private:
  static constexpr double kMaxFlows = 16;  // per stage and link; scaled down above it

  // Returns the messages of each stage on a link.
  std::vector<double> messages_on(const LinkWork& work) const {
    std::vector<double> messages;
    for (const auto* cost : costs_) {
      for (const auto& stage : cost->stages) {
        const double one = stage.flow_rate * stage.seconds_per_byte;  // share of the payload of one
        messages.push_back(work.seconds[messages.size()] * work.capacity / one);
      }
    }
    return messages;
  }

  // Returns a route over the link, no faster than the rate.
  int route(int link, double rate) {
    const auto next = static_cast<int>(set_.routes.size());
    const auto [known, fresh] = routes_.try_emplace({link, rate}, next);
    if (fresh) {
      set_.routes.push_back({link, static_cast<int>(set_.links.size())});
      set_.links.push_back({rate, true});
    }
    return known->second;
  }

  const std::vector<const collective::CollectiveCost*>& costs_;
  FlowSet& set_;
  std::map<std::pair<int, double>, int> routes_;
};

}  // namespace

FlowSet heaviest_flows(const plan::Plan& plan, collective::CostCache& cache) {
  FlowSet set;
  Costs costs = costs_of(plan, cache);
  set.plan_of_op = std::move(costs.of_op);
  HeaviestFlows flows(costs.all, set);
  for (const LinkWork& work : heaviest(works_of(costs.all))) flows.add(work);
  return set;
}

}  // namespace syncline::sim
