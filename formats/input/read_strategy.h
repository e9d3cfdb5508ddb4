// The strategies of a scenario, read from their JSON objects, and the presets that they start from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cluster.h"
#include "core/job.h"
#include "core/strategy.h"
#include "formats/json/reader.h"

namespace syncline::input {

// Reads Syncline's own keys, or a dialect's configuration as it comes out on this workload and
// cluster.
Strategy read_strategy(Reader reader, const Workload& workload, const Cluster& cluster);

// Lists the named rules that the keys of a strategy fall back on.
std::vector<std::string> preset_names();
// Returns the strategy that a preset of that name starts from.
Strategy preset_of(std::string_view name);

}  // namespace syncline::input
