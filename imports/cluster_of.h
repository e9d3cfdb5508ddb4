// The cluster that a job ran on, as far as its files tell, and the times of its collectives there.
#pragma once

#include <string>
#include <vector>

#include "core/cost/measured_table.h"
#include "formats/json/json.h"
#include "imports/observed.h"

namespace syncline::job {

// Writes it as a scenario has it: counts from the number of ranks and the devices that a host
// showed, links from the node in which such a device usually stands. What is assumed goes to
// `assumed`, one sentence each.
Json cluster_of(const Observed& observed, std::vector<std::string>& assumed);

// Returns the collectives of an imported job as measured tables, for calibrate::calibration_of: a
// table for each kind of collective and count of ranks, a row a size: the median over the steps
// (and over collectives of one size within a step) of the least time over the ranks, which is what
// a collective takes once all are there. The rows carry how far the median may be off.
//
// Sizes are counted as nccl-tests does: the larger of what a rank gives and gets.
//
// Empty where nothing can be measured: of fewer than two ranks (one rank's durations hold its
// waiting for the others), without times, or where the ranks of a node are unknown. Left out are
// kinds that a plan cannot hold, collectives without a time, groups of which it is not known how
// they lie on the nodes (smaller than the job, on several nodes), and those of more ranks than were
// read, whose last one may not be among them.
std::vector<cost::MeasuredTable> tables_of(const Observed& observed);

}  // namespace syncline::job
