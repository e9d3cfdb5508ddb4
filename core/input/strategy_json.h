// A strategy in the keys of a scenario, ready to be pasted into one.
#pragma once

#include <nlohmann/json.hpp>

#include "core/json/json.h"
#include "core/scenario/strategy.h"

namespace syncline::input {

// Keys at their defaults are left out; read again on the same workload and cluster, the rest gives
// the same plan. What a dialect's own rule came to stands under "groups".
Json strategy_json(const Strategy& strategy);

}  // namespace syncline::input
