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

// Reads Syncline's own keys, or a dialect's configuration as read for this workload and cluster.
Strategy read_strategy(Reader reader, const Workload& workload, const Cluster& cluster);

// Returns the names of rules that keys of a strategy default to.
std::vector<std::string> preset_names();
// Returns the strategy of a preset.
Strategy preset_of(std::string_view name);

}  // namespace syncline::input
