// Folding: thousands of ranks have few kinds of links. One link and one flow of each kind are
// simulated; where a link carries many flows of a kind, the one claims it as often.
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
  bool stands(std::size_t thing) const {  // for all of its kind
    return first[index(of[thing])] == thing;
  }
};

// Each thing a kind of its own.
Kinds no_kinds(std::size_t things);

struct Folding {
  Kinds routes;
  Kinds links;
};

// The coarsest kinds such that routes of a kind cross links of the same kinds in the same order,
// and links of a kind are crossed by equally many routes of each kind. The colours tell them apart
// from the start.
using Colours = std::vector<collective::Colour>;
Folding folding_of(const std::vector<Route>& routes, Colours of_routes, Colours of_links);

// Of links, by what they can do.
Colours colours_of(const std::vector<FlowLink>& links);

// Returns the first route of each kind over links by kind, each as often as routes of the kind
// cross one.
std::vector<Route> folded_routes(const std::vector<Route>& routes, const Folding& folding);

// What is sent along the first route of each kind, over links by kind.
Traffic folded(const Traffic& traffic);

}  // namespace syncline::sim
