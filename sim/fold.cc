#include "sim/fold.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

namespace syncline {
namespace {

using Colour = std::uint64_t;

Colour mix(Colour a, Colour b) {
  a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6U) + (a >> 2U);
  a *= 0xff51afd7ed558ccdULL;
  return a ^ (a >> 33U);
}

Colour bits(double value) {
  Colour out = 0;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

// Maps each distinct colour to a small number, in order of first appearance.
std::vector<int> numbered(const std::vector<Colour>& colours, int& count) {
  std::unordered_map<Colour, int> seen;
  std::vector<int> numbers;
  numbers.reserve(colours.size());
  for (const Colour colour : colours) {
    numbers.push_back(seen.try_emplace(colour, static_cast<int>(seen.size())).first->second);
  }
  count = static_cast<int>(seen.size());
  return numbers;
}

}  // namespace

FlowSet folded(const FlowSet& set) {
  // A route's colour says which stages send which shares along it.
  std::vector<Colour> routes(set.routes.size(), 1);
  Colour stage_id = 0;
  for (const auto& plan : set.plans) {
    for (const auto& stage : plan) {
      ++stage_id;
      for (const auto& flow : stage) {
        auto& colour = routes[static_cast<std::size_t>(flow.route)];
        colour += mix(stage_id, bits(flow.fraction));  // a sum: the order does not matter
      }
    }
  }
  std::vector<Colour> links;
  for (const auto& link : set.links) links.push_back(mix(bits(link.capacity), link.per_flow));

  // Refine until the number of kinds stands still. A link learns the routes over it, a route its
  // links in order.
  int kinds = 0;
  std::vector<int> route_kind;
  std::vector<int> link_kind;
  while (true) {
    std::vector<Colour> crossed(links.size(), 0);
    for (std::size_t r = 0; r < set.routes.size(); ++r) {
      for (std::size_t place = 0; place < set.routes[r].size(); ++place) {
        // The place on the route keeps ports up and ports down apart: a merged flow must not cross
        // one merged link twice.
        crossed[static_cast<std::size_t>(set.routes[r][place])] += mix(routes[r], place);
      }
    }
    for (std::size_t l = 0; l < links.size(); ++l) links[l] = mix(links[l], crossed[l]);
    for (std::size_t r = 0; r < set.routes.size(); ++r) {
      Colour colour = routes[r];
      for (const int link : set.routes[r])
        colour = mix(colour, links[static_cast<std::size_t>(link)]);
      routes[r] = colour;
    }
    int route_kinds = 0;
    int link_kinds = 0;
    route_kind = numbered(routes, route_kinds);
    link_kind = numbered(links, link_kinds);
    if (route_kinds + link_kinds == kinds) break;
    kinds = route_kinds + link_kinds;
  }

  FlowSet out;
  out.plan_of_op = set.plan_of_op;
  const auto link_kinds =
      set.links.empty() ? 0 : *std::max_element(link_kind.begin(), link_kind.end()) + 1;
  out.links.resize(static_cast<std::size_t>(link_kinds));
  for (std::size_t l = 0; l < set.links.size(); ++l) {
    auto& link = out.links[static_cast<std::size_t>(link_kind[l])];
    link.per_flow = set.links[l].per_flow;
    link.capacity += set.links[l].capacity;
  }
  // One representative route a kind. A per-flow cap stays what it is for one flow; the merged flow
  // stands for many, so its cap grows with them, which only a link of its own can say.
  std::vector<std::size_t> members;
  for (std::size_t r = 0; r < set.routes.size(); ++r) {
    const auto kind = static_cast<std::size_t>(route_kind[r]);
    if (kind >= members.size()) members.resize(kind + 1, 0);
    ++members[kind];
    if (kind < out.routes.size()) continue;
    Route& route = out.routes.emplace_back();
    for (const int link : set.routes[r]) route.push_back(link_kind[static_cast<std::size_t>(link)]);
  }
  for (std::size_t kind = 0; kind < out.routes.size(); ++kind) {
    for (int& link : out.routes[kind]) {
      if (!out.links[static_cast<std::size_t>(link)].per_flow) continue;
      const double cap = out.links[static_cast<std::size_t>(link)].capacity;
      out.links.push_back({cap * static_cast<double>(members[kind]), true});
      link = static_cast<int>(out.links.size()) - 1;
    }
  }
  for (const auto& plan : set.plans) {
    FlowPlan& merged = out.plans.emplace_back();
    for (const auto& stage : plan) {
      // Several flows along one route claim several shares of its links, folded or not.
      struct Sum {
        double fraction = 0;
        std::size_t flows = 0;
      };
      std::map<int, Sum> sums;
      for (const auto& flow : stage) {
        Sum& sum = sums[route_kind[static_cast<std::size_t>(flow.route)]];
        sum.fraction += flow.fraction;
        ++sum.flows;
      }
      FlowStage& folded_stage = merged.emplace_back();
      for (const auto& [route, sum] : sums) {
        const std::size_t along_each = sum.flows / members[static_cast<std::size_t>(route)];
        const std::size_t flows = std::max<std::size_t>(1, along_each);
        for (std::size_t i = 0; i < flows; ++i) {
          folded_stage.push_back({route, sum.fraction / static_cast<double>(flows)});
        }
      }
    }
  }
  return out;
}

}  // namespace syncline
