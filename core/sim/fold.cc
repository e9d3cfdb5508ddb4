// If every link of a kind carries equally many flows of each kind, all flows of a kind always have
// the same rate. Colour refinement finds such an equitable partition. So one flow and one link of
// each kind represent all.
#include "core/sim/fold.h"

#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/base/index.h"

namespace syncline::sim {
namespace {

Kinds kinds_by(const Colours& colours) {
  std::unordered_map<collective::Colour, int> seen;
  Kinds kinds;
  kinds.of.reserve(colours.size());
  for (const collective::Colour colour : colours) {
    const auto [it, fresh] = seen.try_emplace(colour, static_cast<int>(seen.size()));
    if (fresh) kinds.first.push_back(kinds.of.size());
    if (fresh) kinds.members.push_back(0);
    ++kinds.members[index(it->second)];
    kinds.of.push_back(it->second);
  }
  return kinds;
}

// Refines a link's colour by the routes over it, then a route's by its links in order.
void refine(const std::vector<Route>& routes, Colours& of_routes, Colours& of_links) {
  Colours crossed(of_links.size(), 0);
  for (std::size_t r = 0; r < routes.size(); ++r) {
    for (std::size_t place = 0; place < routes[r].size(); ++place) {
      // A sum, as order does not matter. The position distinguishes ports up from ports down.
      const auto link = index(routes[r][place]);
      crossed[link] += collective::mix(of_routes[r], place);
    }
  }
  for (std::size_t l = 0; l < crossed.size(); ++l) {
    of_links[l] = collective::mix(of_links[l], crossed[l]);
  }
  for (std::size_t r = 0; r < routes.size(); ++r) {
    for (const int link : routes[r]) {
      of_routes[r] = collective::mix(of_routes[r], of_links[index(link)]);
    }
  }
}

}  // namespace

Colours colours_of(const std::vector<FlowLink>& links) {
  Colours colours;
  for (const FlowLink& link : links) {
    colours.push_back(collective::mix(collective::bits(link.capacity), link.per_flow));
  }
  return colours;
}

Kinds no_kinds(std::size_t things) {
  Kinds kinds{std::vector<int>(things), std::vector<std::size_t>(things),
              std::vector<std::size_t>(things, 1)};
  std::iota(kinds.of.begin(), kinds.of.end(), 0);
  std::iota(kinds.first.begin(), kinds.first.end(), 0U);
  return kinds;
}

// Refines colours: things that touch different ones get different colours, round after round, until
// the number of kinds is constant.
Folding folding_of(const std::vector<Route>& routes, Colours of_routes, Colours of_links) {
  Folding folding;
  std::size_t kinds = 0;
  std::size_t before = 0;
  do {
    before = kinds;
    refine(routes, of_routes, of_links);
    folding = {kinds_by(of_routes), kinds_by(of_links)};
    kinds = folding.routes.first.size() + folding.links.first.size();
  } while (kinds != before);
  return folding;
}

std::vector<Route> folded_routes(const std::vector<Route>& routes, const Folding& folding) {
  std::vector<Route> folded;
  for (const std::size_t first : folding.routes.first) {
    const std::size_t members = folding.routes.members[folded.size()];
    std::map<int, std::size_t> crossings;  // by kind of link, of all routes of the kind
    for (const int link : routes[first]) {
      crossings[folding.links.of[index(link)]] += members;
    }
    Route& route = folded.emplace_back();
    for (const auto& [kind, all] : crossings) {
      route.insert(route.end(), all / folding.links.members[index(kind)], kind);
    }
  }
  return folded;
}

Traffic fold_traffic(const Traffic& traffic) {
  // A route's initial colour encodes the sets that send along it, and how often.
  Colours of_routes(traffic.routes.size(), 1);
  collective::Colour set_id = 0;
  for (const auto& pattern : traffic.patterns) {
    for (const auto& set : pattern) {
      const collective::Colour colour = collective::mix(++set_id, 1);
      for (const int route : set) of_routes[index(route)] += colour;
    }
  }
  const Folding folding =
      folding_of(traffic.routes, std::move(of_routes), colours_of(traffic.links));
  Traffic kept;
  for (const std::size_t first : folding.links.first) kept.links.push_back(traffic.links[first]);
  kept.routes = folded_routes(traffic.routes, folding);
  for (const Traffic::RouteSets& sets : traffic.patterns) {
    Traffic::RouteSets& pattern = kept.patterns.emplace_back();
    for (const std::vector<int>& set : sets) {
      std::vector<int>& kinds = pattern.emplace_back();
      for (const int route : set) {
        const auto at = index(route);
        if (folding.routes.stands(at)) kinds.push_back(folding.routes.of[at]);
      }
    }
  }
  kept.payloads = traffic.payloads;
  kept.payload_of_op = traffic.payload_of_op;
  return kept;
}

}  // namespace syncline::sim
