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

// Colours by route or by link; things of different colours are never of one kind.
using Colours = std::vector<collective::Colour>;

// Returns the coarsest kinds. Routes of a kind cross links of the same kinds in the same order.
// Links of a kind are crossed by equally many routes of each kind.
Folding folding_of(const std::vector<Route>& routes, Colours of_routes, Colours of_links);

// Returns colours of links by their capacity and sharing.
Colours colours_of(const std::vector<FlowLink>& links);

// Returns the first route of each kind over links by kind; a link is listed as often as routes of
// the kind cross it. Example: four GPUs send to one port, link 4, and a fifth sends elsewhere.
//
//   routes            {0, 4}  {1, 4}  {2, 4}  {3, 4}  {5}
//   kinds of routes   0       0       0       0       1
//   kinds of links    0: links 0 to 3,  1: link 4,  2: link 5
//   folded routes     {0, 1, 1, 1, 1}  {2}
//
// The one flow claims the port four times, so it gets a quarter of it, as each of the four does.
std::vector<Route> folded_routes(const std::vector<Route>& routes, const Folding& folding);

// Returns the traffic along the first route of each kind, over links by kind.
Traffic fold_traffic(const Traffic& traffic);

}  // namespace syncline::sim
