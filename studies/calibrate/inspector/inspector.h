// What NCCL's Inspector wrote of a job (NCCL's profiler plugin, NCCL 2.28 and later): a line of
// JSON for each collective of each rank, in a file a process. Ranks are joined, and the time of the
// one that came last stands; of what was repeated the median. Sizes are counted as nccl-tests does.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cost/measured_table.h"

namespace syncline::calibrate {

// Whether the text begins with a line of the Inspector's.
bool is_inspector_text(std::string_view begin);

// Whether the file, or one in the folder, begins like that.
bool is_inspector_log(const std::string& path);

// A file, or all of a folder (NAME.log, .json, .jsonl, also packed with gzip), as a table for each
// kind of collective, count of ranks and of nodes; gpus_per_node is their ratio. `left_out` says
// what was dropped: collectives that some rank did not report, times that the host took, lost
// lines. Throws InputError, naming file and line, for a line that is cut off, no JSON or without
// one of these keys, and where nothing is left.
std::vector<cost::MeasuredTable> read_inspector_log(const std::string& path);

// The same of texts; `source` stands for all of them, each one's name for its file in messages.
std::vector<cost::MeasuredTable> inspector_tables(
    const std::string& source, const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace syncline::calibrate
