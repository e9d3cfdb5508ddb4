// What NCCL's Inspector wrote of a job (NCCL's profiler plugin, plugins/profiler/inspector,
// NCCL 2.28 and later): a line of JSON for each collective of each rank, in a file a process:
//
//   {"header": {"id", "rank", "n_ranks", "nnodes"}, "metadata": {...},
//    "coll_perf": {"coll": "AllReduce", "coll_sn", "coll_msg_size_bytes", "coll_exec_time_us",
//                  "coll_timing_source": "kernel_gpu", ...}}
//
// A rank's time holds its waiting for the others, so ranks are joined and the least time stands:
// that of the rank which came last. They are joined by communicator, collective and coll_sn: NCCL
// counts coll_sn for each kind of collective of a communicator by itself (comm->seqNumber[func],
// src/enqueue.cc). Of what was repeated, the median over coll_sn is taken at each size: a job's
// times have a long tail on one side (other traffic, clocks), which a mean follows and a median
// does not.
//
// Sizes are counted as nccl-tests does: coll_msg_size_bytes is what a rank gives for all-gather and
// gets for reduce-scatter, a share of the payload (inspectorComputeCollBw multiplies it likewise).
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
