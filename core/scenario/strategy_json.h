// A strategy in the keys of a scenario, ready to be pasted into one.
#pragma once

#include <nlohmann/json.hpp>

#include "core/scenario/scenario.h"

namespace syncline {

// Keys at their defaults are left out; read again, the rest gives the same strategy. Groups from a
// dialect become end indices where they are runs of gradients; other groups have no key of their
// own and are listed under "groups", which only a person reads.
Json strategy_json(const Strategy& strategy);

}  // namespace syncline
