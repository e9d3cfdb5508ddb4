// The axes of a search, read from its JSON object.
#pragma once

#include "formats/json/reader.h"
#include "formats/scenario/scenario.h"
#include "formats/scenario/search.h"

namespace syncline::input {

// Reads the search. Requires the scenario's strategies, baseline and cluster.
Search read_search(Reader reader, const Scenario& scenario);

}  // namespace syncline::input
