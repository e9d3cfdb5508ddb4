// The workload and the strategy of a job that is cut into groups of ranks (Observed::whole): its
// stages as they were measured, those that were not as the first rank's.
#pragma once

#include <string>
#include <vector>

#include "core/job.h"
#include "imports/bucket_rule.h"
#include "imports/observed.h"

namespace syncline::job {

// Puts layout, tensors and times of one micro-batch into `workload`. What no file told goes to
// `assumed`, one sentence each.
void cut_as_observed(const Observed& observed, Workload& workload,
                     std::vector<std::string>& assumed);

// Returns the strategy that it ran with, in the workload's tensors, and what it is in words.
BucketRule whole_rule(const Observed& observed);

// Writes the layout in words: "tensor 2 x pipeline 2 x data 2, 4 micro-batches".
std::string layout_text(const Whole& whole, int world_size);

}  // namespace syncline::job
