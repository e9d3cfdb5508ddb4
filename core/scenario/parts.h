// The parts of a scenario, each read from its own JSON object. Used by parse_scenario alone.
#pragma once

#include "core/scenario/reader.h"
#include "core/scenario/scenario.h"

namespace syncline {

Cluster read_cluster(Reader reader);
// FLOPs without a measured time are priced by the device.
Workload read_workload(Reader reader, const Device& device);
// Syncline's own keys, or a dialect's configuration as it comes out on this workload and cluster.
Strategy read_strategy(Reader reader, const Workload& workload, const Cluster& cluster);

}  // namespace syncline
