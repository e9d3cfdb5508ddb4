// The cluster that a job ran on, as far as its files tell.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/job/observed.h"
#include "core/json/json.h"

namespace syncline::job {

// As a scenario has it: counts from the number of ranks and the devices that a host showed, links
// from the node in which such a device usually stands. What is assumed goes to `assumed`, one
// sentence each.
Json cluster_of(const Observed& observed, std::vector<std::string>& assumed);

}  // namespace syncline::job
