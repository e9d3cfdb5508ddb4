// The fabric of a cluster, read from its JSON object: links and routes between the nodes.
#pragma once

#include <memory>
#include <vector>

#include "core/cluster.h"
#include "formats/json/reader.h"

namespace syncline::input {

// Reads a "fabric" that is an object; `inter` has the nodes' ports. Requires that the number of the
// cluster's nodes is known.
std::shared_ptr<const fabric::Topology> read_topology(Reader named, const Cluster& cluster,
                                                      const Tier& inter);
// Puts another job's cluster on the first one's fabric, on nodes that are free.
void join_fabric(Reader& entry, const Cluster& first, const std::vector<int>& taken,
                 Cluster& cluster);

}  // namespace syncline::input
