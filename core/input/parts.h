// The parts of a scenario, each read from its own JSON object.
#pragma once

#include <vector>

#include "core/json/reader.h"
#include "core/scenario/scenario.h"
#include "core/scenario/search.h"

namespace syncline::input {

// A device's figures that have a key each, in the order in which they are read and written.
struct DeviceFigure {
  const char* key;
  double Device::*figure;
  double unit;
  double most;  // in the file's unit
};
const std::vector<DeviceFigure>& device_figures();

// Hardware by name is filled in (hardware_json.h).
Cluster read_cluster(Reader named);
// FLOPs without a measured time are priced by the device.
Workload read_workload(Reader reader, const Device& device);
// Syncline's own keys, or a dialect's configuration as it comes out on this workload and cluster.
Strategy read_strategy(Reader reader, const Workload& workload, const Cluster& cluster);
// The axes of a search. Requires the scenario's strategies, baseline and cluster.
Search read_search(Reader reader, const Scenario& scenario);

}  // namespace syncline::input
