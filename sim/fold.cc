// Where every link of a kind carries equally many flows of each kind (an equitable partition, found
// by colour refinement), the time at which a stage's last flow ends is unchanged as long as flows
// of different kinds do not compete unevenly for one link; a test pins the difference for every
// algorithm.
#include "sim/fold.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "core/collective/colour.h"

namespace syncline::sim {
namespace {

// Maps each distinct colour to a small number, in order of first appearance.
std::vector<int> numbered(const std::vector<collective::Colour>& colours, std::size_t& count) {
  std::unordered_map<collective::Colour, int> seen;
  std::vector<int> numbers;
  numbers.reserve(colours.size());
  for (const collective::Colour colour : colours) {
    numbers.push_back(seen.try_emplace(colour, static_cast<int>(seen.size())).first->second);
  }
  count = seen.size();
  return numbers;
}

// A colour a route and a link: what is known to tell it from others so far.
struct Colours {
  std::vector<collective::Colour> routes;
  std::vector<collective::Colour> links;
};

// At first a route's colour says which sets send along it and how often, a link's what it can do.
Colours first_colours(const Traffic& traffic) {
  Colours colours{std::vector<collective::Colour>(traffic.routes.size(), 1), {}};
  collective::Colour set_id = 0;
  for (const auto& pattern : traffic.patterns) {
    for (const auto& set : pattern) {
      const collective::Colour colour = collective::mix(++set_id, 1);
      // A sum: the order does not matter.
      for (const int route : set) colours.routes[static_cast<std::size_t>(route)] += colour;
    }
  }
  for (const auto& link : traffic.links) {
    colours.links.push_back(collective::mix(collective::bits(link.capacity), link.per_flow));
  }
  return colours;
}

// A link learns the routes over it, then a route its links in order.
void refine(const Traffic& set, Colours& colours) {
  std::vector<collective::Colour> crossed(set.links.size(), 0);
  for (std::size_t r = 0; r < set.routes.size(); ++r) {
    for (std::size_t place = 0; place < set.routes[r].size(); ++place) {
      // The place on the route keeps ports up and ports down apart: a merged flow must not cross
      // one merged link twice.
      const auto link = static_cast<std::size_t>(set.routes[r][place]);
      crossed[link] += collective::mix(colours.routes[r], place);
    }
  }
  for (std::size_t l = 0; l < crossed.size(); ++l) {
    colours.links[l] = collective::mix(colours.links[l], crossed[l]);
  }
  for (std::size_t r = 0; r < set.routes.size(); ++r) {
    for (const int link : set.routes[r]) {
      colours.routes[r] =
          collective::mix(colours.routes[r], colours.links[static_cast<std::size_t>(link)]);
    }
  }
}

// Routes and links by kind, and how many routes a kind has.
struct Kinds {
  std::vector<int> route;
  std::vector<int> link;
  std::size_t routes = 0;
  std::size_t links = 0;
  std::vector<std::size_t> members;  // by kind of route
  std::vector<std::size_t> copies;   // by kind of route: flows that stand for its members
};

// Kinds of routes that meet on some link, directly or through others: by kind, one of them for all.
std::vector<std::size_t> meeting(const Traffic& set, const Kinds& kinds) {
  std::vector<std::size_t> parent(kinds.routes);
  std::iota(parent.begin(), parent.end(), 0U);
  const auto root = [&](std::size_t kind) {
    while (parent[kind] != kind) kind = parent[kind] = parent[parent[kind]];
    return kind;
  };
  std::vector<std::size_t> on_link(kinds.links, kinds.routes);  // the first kind seen on each
  for (std::size_t r = 0; r < set.routes.size(); ++r) {
    const auto kind = static_cast<std::size_t>(kinds.route[r]);
    for (const int id : set.routes[r]) {
      const auto link = static_cast<std::size_t>(id);
      if (set.links[link].per_flow) continue;
      std::size_t& first = on_link[static_cast<std::size_t>(kinds.link[link])];
      if (first == kinds.routes) first = kind;
      parent[root(kind)] = root(first);
    }
  }
  for (std::size_t kind = 0; kind < kinds.routes; ++kind) parent[kind] = root(kind);
  return parent;
}

// A link is shared evenly by the flows on it, so where kinds of different numbers of routes meet,
// each has flows in proportion; beyond kMostCopies in the nearest proportion.
std::vector<std::size_t> copies_of(const Traffic& set, const Kinds& kinds) {
  constexpr std::size_t kMostCopies = 64;
  const std::vector<std::size_t> met = meeting(set, kinds);
  std::vector<std::size_t> divisor(kinds.routes, 0);
  std::vector<std::size_t> most(kinds.routes, 0);
  for (std::size_t kind = 0; kind < kinds.routes; ++kind) {
    divisor[met[kind]] = std::gcd(divisor[met[kind]], kinds.members[kind]);
    most[met[kind]] = std::max(most[met[kind]], kinds.members[kind]);
  }
  std::vector<std::size_t> copies;
  for (std::size_t kind = 0; kind < kinds.routes; ++kind) {
    const std::size_t members = kinds.members[kind];
    const std::size_t largest = most[met[kind]];
    const bool exact = largest <= kMostCopies * divisor[met[kind]];
    copies.push_back(exact ? members / divisor[met[kind]]
                           : std::max<std::size_t>(1, members * kMostCopies / largest));
  }
  return copies;
}

// Colour refinement (the coarsest equitable partition): what differs in anything that it touches
// gets another colour, round after round, until the number of kinds stands still.
Kinds kinds_of(const Traffic& set) {
  Colours colours = first_colours(set);
  Kinds kinds;
  std::size_t before = 0;
  do {
    before = kinds.routes + kinds.links;
    refine(set, colours);
    kinds.route = numbered(colours.routes, kinds.routes);
    kinds.link = numbered(colours.links, kinds.links);
  } while (kinds.routes + kinds.links != before);
  kinds.members.assign(kinds.routes, 0);
  for (const int kind : kinds.route) ++kinds.members[static_cast<std::size_t>(kind)];
  kinds.copies = copies_of(set, kinds);
  return kinds;
}

// One link a kind, of the total capacity, and one representative route a kind over them.
void merge_network(const Traffic& set, const Kinds& kinds, FlowSet& out) {
  out.links.resize(kinds.links);
  for (std::size_t l = 0; l < set.links.size(); ++l) {
    auto& link = out.links[static_cast<std::size_t>(kinds.link[l])];
    link.per_flow = set.links[l].per_flow;
    link.capacity += set.links[l].capacity;
  }
  // Kinds are numbered as they appear: the first route of each is met in their order.
  for (std::size_t r = 0; r < set.routes.size(); ++r) {
    if (static_cast<std::size_t>(kinds.route[r]) < out.routes.size()) continue;
    Route& route = out.routes.emplace_back();
    for (const int link : set.routes[r]) {
      route.push_back(kinds.link[static_cast<std::size_t>(link)]);
    }
  }
  // A per-flow cap stays what it is for one flow; a merged flow stands for many, so its cap grows
  // with them, which only a link of its own can say.
  for (std::size_t kind = 0; kind < out.routes.size(); ++kind) {
    for (int& link : out.routes[kind]) {
      if (!out.links[static_cast<std::size_t>(link)].per_flow) continue;
      const double cap = out.links[static_cast<std::size_t>(link)].capacity;
      const auto each = static_cast<double>(kinds.members[kind]);
      out.links.push_back({cap * each / static_cast<double>(kinds.copies[kind]), true});
      link = static_cast<int>(out.links.size()) - 1;
    }
  }
}

// How many flows of each kind of route set out with a set.
using FlowCounts = std::map<int, std::size_t>;

std::vector<FlowCounts> counted(const Traffic::RouteSets& sets, const Kinds& kinds) {
  std::vector<FlowCounts> counts(sets.size());
  for (std::size_t s = 0; s < sets.size(); ++s) {
    for (const int route : sets[s]) ++counts[s][kinds.route[static_cast<std::size_t>(route)]];
  }
  return counts;
}

// The flows of each kind as few of their total bytes. Several along one route claim several shares
// of its links, folded or not: as many are left, for each copy, as each route of the kind has.
FlowStage merged_stage(const collective::Stage& stage, int parts,
                       const std::vector<FlowCounts>& counts, const Kinds& kinds) {
  FlowCounts sums;
  for (std::size_t s = stage.first; s < stage.last; ++s) {
    for (const auto& [route, flows] : counts[s]) sums[route] += flows;
  }
  const double fraction = stage.fraction * static_cast<double>(stage.repeat) / parts;
  FlowStage merged;
  for (const auto& [route, all] : sums) {
    const auto kind = static_cast<std::size_t>(route);
    const std::size_t along_each = std::max<std::size_t>(1, all / kinds.members[kind]);
    const std::size_t flows = along_each * kinds.copies[kind];
    const double total = fraction * static_cast<double>(all);
    merged.insert(merged.end(), flows, {route, total / static_cast<double>(flows)});
  }
  return merged;
}

}  // namespace

FlowSet folded(const Traffic& traffic) {
  const Kinds kinds = kinds_of(traffic);
  FlowSet out;
  out.plan_of_op = traffic.payload_of_op;
  merge_network(traffic, kinds, out);
  std::vector<std::vector<FlowCounts>> counts;
  for (const auto& pattern : traffic.patterns) counts.push_back(counted(pattern, kinds));
  for (const auto& payload : traffic.payloads) {
    FlowPlan& merged = out.plans.emplace_back();
    for (const auto& stage : payload.stages) {
      merged.push_back(merged_stage(stage, payload.parts, counts[payload.pattern], kinds));
    }
    if (payload.at_once) merged = at_once(merged);
  }
  return out;
}

}  // namespace syncline::sim
