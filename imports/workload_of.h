// The workload of a job that was seen: its gradients in ready order, with their times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cluster.h"
#include "core/job.h"
#include "imports/observed.h"

namespace syncline::job {

// Adds to the step what its buckets carry beside the gradients that were told, as gradients of
// their own. Says in `assumed` where the two sums differ.
Step with_all_that_is_sent(Step step, std::vector<std::string>& assumed);

// `batch`: samples a rank and step; 0: nobody said.
Workload workload_of(const Observed& observed, const Step& step, std::int64_t batch,
                     std::vector<std::string>& assumed);

// Rescales the workload's times from the job's device to the cluster's, by the square root of the
// product of the ratios of FLOPs and memory bandwidth, and sets its time_spread to what lies
// between the two. True: it did, as they differ. Says in `assumed` what it did, or that nothing
// names a device. Throws InputError where the devices differ and the rates of one are not known.
bool rescale_times(const Observed& observed, const Step& step, const Device& device,
                   Workload& workload, std::vector<std::string>& assumed);

}  // namespace syncline::job
