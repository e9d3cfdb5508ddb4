// The cluster of a scenario, read from its JSON object.
#pragma once

#include "core/cluster.h"
#include "formats/json/reader.h"

namespace syncline::input {

// Reads the cluster, and fills in hardware by name (hardware_json.h).
Cluster read_cluster(Reader named);

}  // namespace syncline::input
