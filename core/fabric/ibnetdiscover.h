// What ibnetdiscover (infiniband-diags) prints of an InfiniBand network, as a fabric: its switches,
// cables by width and speed, and hosts by the first word of their adapters' descriptions.
// Bytes per second of data, each direction. Throws InputError that names the line.
#pragma once

#include <string>

#include "core/fabric/topology.h"

namespace syncline::fabric {

// Its nodes are the hosts with so many ports as a job's node has, by name; each port a lane, in the
// order of adapters. `reached`: share of what cables promise. A port of less than `node_port` is a
// link of its own.
Topology ibnetdiscover_fabric(const std::string& text, int ports, BytesPerSecond node_port,
                              double reached);

}  // namespace syncline::fabric
