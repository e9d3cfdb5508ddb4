// Logs of NCCL's Inspector (NCCL's profiler plugin, NCCL 2.28 and later): one file per process, one
// line of JSON per collective. Ranks are joined: the latest rank's time counts, and the median of
// repetitions. Sizes are counted as in nccl-tests.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cost/measured_table.h"

namespace syncline::calibrate {

// Returns true if the text begins with a line of the Inspector.
bool is_inspector_text(std::string_view begin);

// Returns true if the file, or one in the folder, begins with a line of the Inspector.
bool is_inspector_log(const std::string& path);

// Reads a file or a folder (NAME.log, .json, .jsonl, also gzipped) as one table per collective,
// ranks and nodes; gpus_per_node is their ratio. `left_out` lists dropped parts: collectives that
// some rank did not report, times taken by the host, lost lines. Throws InputError, naming file and
// line, for a line that is cut off, no JSON or lacks a key, and if no collective is left.
std::vector<cost::MeasuredTable> read_inspector_log(const std::string& path);

// Returns the tables of `files`, pairs of a file's name and its text. Messages about all of them
// name `source`.
std::vector<cost::MeasuredTable> inspector_tables(
    const std::string& source, const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace syncline::calibrate
