// Strategies of a scenario by name, and messages about them.
#pragma once

#include <string>
#include <vector>

#include "formats/dialect/write.h"
#include "formats/input/document.h"
#include "formats/scenario/scenario.h"

namespace syncline::questions {

// Returns the strategy of that name; the first one for an empty name. Throws InputError with the
// scenario's names and the nearest of them.
const Strategy& chosen_strategy(const Scenario& scenario, const std::string& name,
                                const std::string& file);
// Returns the strategies of these names, in their order; all if there are no names.
std::vector<Strategy> chosen_strategies(const Scenario& scenario,
                                        const std::vector<std::string>& names,
                                        const std::string& file);

// Returns the warnings of a scenario (studies/warnings/warnings.h) for these of its strategies,
// without its sweep.
std::vector<std::string> warnings_here(const input::Document& document,
                                       const std::vector<Strategy>& strategies);

// Says that a dialect cannot express the strategy, and names its nearest configuration.
std::string nearest_text(const Strategy& strategy, const std::string& dialect,
                         const dialect::Written& written);

}  // namespace syncline::questions
