// The cluster of an observed job, as its files describe it, and its collectives' times.
#pragma once

#include <string>
#include <vector>

#include "core/cost/measured_table.h"
#include "formats/json/json.h"
#include "imports/observed.h"

namespace syncline::job {

// Returns the job's cluster as JSON of a scenario: node counts by the number of ranks and a host's
// devices, links of the usual node for such a device. Adds each assumption to `assumed`.
Json cluster_of(const Observed& observed, std::vector<std::string>& assumed);

// Returns the collectives of an imported job as measured tables, for calibrate::calibration_of: a
// table for each kind of collective and count of ranks, a row for each size. A row's time is the
// median over the steps (and over collectives of one size within a step) of the least time over the
// ranks: the time once all are there. The rows have the median's uncertainty.
//
// Sizes are counted as nccl-tests does: the larger of a rank's input and output.
//
// Empty if no time can be measured: fewer than two ranks (one rank's durations include its waiting
// for the others), no times, or unknown ranks per node. Excludes kinds that a plan cannot hold, and
// collectives without a time. Excludes groups with an unknown placement (smaller than the job, on
// several nodes) or of more ranks than were read, as their last rank may be missing.
std::vector<cost::MeasuredTable> tables_of(const Observed& observed);

}  // namespace syncline::job
