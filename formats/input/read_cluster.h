// The cluster of a scenario, read from its JSON object.
#pragma once

#include "core/cluster.h"
#include "formats/json/reader.h"

namespace syncline::input {

// Fills in hardware by name (scenario_json.h).
Cluster read_cluster(Reader named);

}  // namespace syncline::input
