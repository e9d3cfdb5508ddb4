// The workload of a scenario, read from its JSON object.
#pragma once

#include "core/cluster.h"
#include "core/job.h"
#include "formats/json/reader.h"

namespace syncline::input {

// Reads the workload. Converts FLOPs without a measured time by the cluster's device.
Workload read_workload(Reader reader, const Cluster& cluster);

}  // namespace syncline::input
