// A document judged: every key of a scenario, with what it may be. Everything is in SI units once
// it has passed here.
#pragma once

#include <optional>

#include "core/input/document.h"
#include "core/scenario/scenario.h"
#include "core/scenario/search.h"

namespace syncline::input {

// Checks every key and gives the typed scenario. Throws InputError.
Scenario parse_scenario(const Document& document);
// For what costs a job by itself: others on its fabric are refused.
Scenario parse_lone_scenario(const Document& document);

// The document's search; nothing where it has none. `scenario` is the document's.
std::optional<Search> parse_search(const Document& document, const Scenario& scenario);

}  // namespace syncline::input
