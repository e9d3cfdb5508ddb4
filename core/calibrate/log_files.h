// Logs as they are named on the command line, of nccl-tests or of NCCL's Inspector (inspector.h; a
// folder of files is the Inspector's): FILE; FILE@10x2 where the log does not say that it
// ran on 10 nodes of 2 GPUs; FILE:ring or FILE:tree (FILE@10x2:ring) where NCCL was forced to that.
#pragma once

#include <string>
#include <vector>

#include "core/cost/measured_table.h"

namespace syncline::calibrate {

// Their tables of collectives that a plan can ask for, with known counts of nodes and GPUs. Throws
// InputError for a file without any, and where the counts are known neither from it nor its name.
//
// `algorithm`: what NCCL was forced to where a name does not say: ring, tree, or nccl for its own
// choice.
std::vector<cost::MeasuredTable> tables_in(const std::vector<std::string>& names,
                                           const std::string& algorithm = "nccl");

}  // namespace syncline::calibrate
