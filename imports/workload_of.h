// The workload of an observed job: its gradients in ready order, with their times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cluster.h"
#include "core/job.h"
#include "imports/observed.h"

namespace syncline::job {

// Adds the content of buckets beyond the known gradients to the step, as further gradients. Adds a
// sentence to `assumed` if the two sums differ.
Step with_all_that_is_sent(Step step, std::vector<std::string>& assumed);

// Returns the workload. `batch`: samples per rank and step; 0: not given.
Workload workload_of(const Observed& observed, const Step& step, std::int64_t batch,
                     std::vector<std::string>& assumed);

// Rescales the workload's times from the job's device to the cluster's. The factor is the square
// root of the product of the ratios of FLOPs and memory bandwidth; time_spread is the range between
// the two. Returns true if the devices differ. Notes the change, or an unknown device, in
// `assumed`. Throws InputError if the devices differ and the rates of one are unknown.
bool rescale_times(const Observed& observed, const Step& step, const Device& device,
                   Workload& workload, std::vector<std::string>& assumed);

}  // namespace syncline::job
