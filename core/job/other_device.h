// Times that were seen on one device, for a cluster that has another.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/job/observed.h"
#include "core/json/json.h"
#include "core/scenario/cluster.h"

namespace syncline::job {

// Rescales the workload's times from the job's device to the cluster's, by the square root of the
// product of the ratios of FLOPs and memory bandwidth, and sets its time_spread to what lies
// between the two. True: it did, as they differ. Says in `assumed` what it did, or that nothing
// names a device. Throws InputError where the devices differ and the rates of one are not known.
bool rescale_times(const Observed& observed, const Step& step, const Device& device, Json& workload,
                   std::vector<std::string>& assumed);

}  // namespace syncline::job
