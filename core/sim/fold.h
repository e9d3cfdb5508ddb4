// Folding: thousands of ranks have few kinds of links. One link and one flow of each kind are
// simulated; if a link carries several flows of a kind, the one claims it that often.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/index.h"
#include "core/collective/footprint.h"
#include "core/sim/flows.h"

namespace syncline::sim {

// Things by kind. Kinds are numbered as they first appear.
struct Kinds {
  std::vector<int> of;                    // by thing
  std::vector<std::size_t> first;         // by kind: the first thing of it
  std::vector<std::size_t> members;       // by kind
  bool stands(std::size_t thing) const {  // true: it represents its kind
    return first[index(of[thing])] == thing;
  }
};

// Returns each thing as a kind of its own.
Kinds no_kinds(std::size_t things);

struct Folding {
  Kinds routes;
  Kinds links;
};

// Initial colours keep routes or links apart. folding_of returns the coarsest kinds: routes of a
// kind cross links of the same kinds in the same order; links of a kind are crossed by equally many
// routes of each kind.
using Colours = std::vector<collective::Colour>;
Folding folding_of(const std::vector<Route>& routes, Colours of_routes, Colours of_links);

// Returns colours of links by their capacity and sharing.
Colours colours_of(const std::vector<FlowLink>& links);

// Returns the first route of each kind over links by kind; a link is listed as often as routes of
// the kind cross it.
std::vector<Route> folded_routes(const std::vector<Route>& routes, const Folding& folding);

// Returns the traffic along the first route of each kind, over links by kind.
Traffic fold_traffic(const Traffic& traffic);

}  // namespace syncline::sim
