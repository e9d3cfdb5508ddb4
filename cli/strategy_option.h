// The strategy that a verb's --strategy names.
#pragma once

#include <string>

#include "core/scenario/scenario.h"

namespace syncline::cli {

// The strategy of that name, the first one for an empty name. Throws InputError with the names that
// the scenario has and the nearest of them.
const Strategy& chosen_strategy(const Scenario& scenario, const std::string& name,
                                const std::string& file);

}  // namespace syncline::cli
