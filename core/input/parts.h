// The parts of a scenario, each read from its own JSON object. Used by parse_scenario alone.
#pragma once

#include <optional>
#include <string>

#include "core/json/reader.h"
#include "core/scenario/scenario.h"
#include "core/scenario/search.h"

namespace syncline {

Cluster read_cluster(Reader reader);
// FLOPs without a measured time are priced by the device.
Workload read_workload(Reader reader, const Device& device);
// Syncline's own keys, or a dialect's configuration as it comes out on this workload and cluster.
Strategy read_strategy(Reader reader, const Workload& workload, const Cluster& cluster);
Hierarchy read_hierarchy(Reader reader, const Cluster& cluster);
Compression read_compression(Reader reader);
LocalSgd read_local_sgd(Reader reader, int ranks);
ComputeFusion read_compute_fusion(Reader reader);
// The axes of a search. Requires the scenario's strategies, baseline and cluster.
Search read_search(Reader reader, const Scenario& scenario);

// A knob that another one, or the cluster, rules out: the key at fault and why; nothing where all
// fit together.
struct Misfit {
  std::string key;
  std::string why;
};
std::optional<Misfit> misfit_of(const Strategy& strategy, const Cluster& cluster);

}  // namespace syncline
