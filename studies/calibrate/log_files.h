// Logs as they are named on the command line, of nccl-tests or of NCCL's Inspector (inspector.h; a
// folder of files is the Inspector's): FILE; FILE@10x2 where the log does not say that it
// ran on 10 nodes of 2 GPUs; FILE:ring or FILE:tree (FILE@10x2:ring) where NCCL was forced to that,
// FILE:nccl where the log says so and it was NCCL's own choice all the same; FILE:half for the rows
// of that type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cost/measured_table.h"

namespace syncline::calibrate {

// Their tables of collectives that a plan can ask for, with known counts of nodes and GPUs. Throws
// InputError for a file without any, and where the counts are known neither from it nor its name.
// Tables of one shape may differ in type, operation or root: one is taken. Its notes name the
// others, and whatever else of a file is not read.
//
// `algorithm`: what NCCL was forced to where neither a name nor its log says: ring, tree, or nccl
// for its own choice.
std::vector<cost::MeasuredTable> tables_in(const std::vector<std::string>& names,
                                           const std::string& algorithm = "nccl");

// Reading what nccl-tests prints, in every layout since 2018, and its JSON (-J).
//
// A log is whatever a user kept: output of mpirun or srun with their prefixes, NCCL's own INFO
// lines in between or glued into a row, several tests in one file, cut off at the end, indented in
// a Markdown page. Rows are found by their first three columns (two integers and a type); what the
// other columns mean comes from the table's head. Times are printed in microseconds, in
// milliseconds by the tests of 2018.
//
// No time is read that size / algbw contradicts: so a column that is not where the head says,
// another unit or a slip of the pen is found. Rows that differ in type, operation, root or in the
// words of a column that is not the test's are tables of their own.
//
// Who took part comes from the list of devices (host names make nodes; bus and device numbers say
// nothing, since launchers hide the other devices), else from comments of the form "# NODES: 8",
// "# GPUS: 32", "# NCCL: 2.18", "# COLLECTIVE: all_reduce_perf" that a published table may carry
// above it, else from the columns: busbw / algbw is 2(n-1)/n for all-reduce and (n-1)/n for
// all-gather, reduce-scatter and all-to-all, where also size = n x count x element. What
// contradicts the columns is not believed. What stays unknown is 0 or empty.

// All tables of a file that hold a row, in order. Throws InputError when there is none, saying what
// was looked for.
std::vector<cost::MeasuredTable> read_nccl_log(const std::string& path);

// The same of a text; `name` stands for the file in messages.
std::vector<cost::MeasuredTable> nccl_log_from_text(const std::string& name, std::string_view text);

// The text of a file: unpacked where it is gzip's (by its first two bytes), else as it is. Throws
// InputError, naming `path`, where such a file is damaged, cut off or larger than 1 GiB unpacked.
std::string unpacked(const std::string& path, std::string bytes);

}  // namespace syncline::calibrate
