// The workload and the strategy of a partitioned job (Observed::whole). Pipeline stages of ranks
// that were read are as measured, the others as the first rank's.
#pragma once

#include <string>
#include <vector>

#include "core/job.h"
#include "imports/bucket_rule.h"
#include "imports/observed.h"

namespace syncline::job {

// Sets layout, tensors and times of one micro-batch in `workload`. Adds a sentence to `assumed` for
// each fact that no file had.
void cut_as_observed(const Observed& observed, Workload& workload,
                     std::vector<std::string>& assumed);

// Returns the job's strategy, in the workload's tensors, and its description.
BucketRule whole_rule(const Observed& observed);

// Returns the layout in words: "tensor 2 x pipeline 2 x data 2, 4 micro-batches".
std::string layout_text(const Whole& whole, int world_size);

}  // namespace syncline::job
