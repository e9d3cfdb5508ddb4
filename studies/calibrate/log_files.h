// Logs of nccl-tests or of NCCL's Inspector (inspector.h; a folder is the Inspector's), as named on
// the command line: FILE; FILE@10x2 to say that it ran on 10 nodes of 2 GPUs; FILE:ring or
// FILE:tree (FILE@10x2:ring) if NCCL was forced to that; FILE:nccl if the choice was NCCL's despite
// the log; FILE:half for the rows of that type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cost/measured_table.h"

namespace syncline::calibrate {

// Reads the logs' tables of collectives that a plan can use, with known counts of nodes and GPUs.
// Throws InputError for a file without any, and if neither the file nor its name gives the counts.
// Of tables of one shape that differ in type, operation or root, one is taken. Its notes name the
// others and all else that is skipped.
//
// `algorithm`: forced algorithm if neither a name nor its log gives one: ring, tree, or nccl for
// NCCL's choice.
std::vector<cost::MeasuredTable> read_tables(const std::vector<std::string>& names,
                                             const std::string& algorithm = "nccl");

// Reads the output of nccl-tests, in every layout since 2018, and its JSON (-J).
//
// A log may be the output of mpirun or srun with prefixes, contain NCCL's INFO lines between or
// inside rows, hold several tests, be cut off, or be indented in a Markdown page. Rows are found by
// their first three columns (two integers and a type); the table's head gives the meaning of the
// other columns. Times are in microseconds, in milliseconds for the tests of 2018.
//
// A time that size / algbw contradicts is not read: this finds a shifted column, another unit or a
// typo. Rows that differ in type, operation, root or in the words of a column that is not the
// test's form separate tables.
//
// Nodes and GPUs come from the list of devices: host names make nodes; bus and device numbers are
// ignored, since launchers hide the other devices. Else they come from comments "# NODES: 8", "#
// GPUS: 32", "# NCCL: 2.18", "# COLLECTIVE: all_reduce_perf" above a published table. Else from the
// columns: busbw / algbw is 2(n-1)/n for all-reduce and (n-1)/n for all-gather, reduce-scatter and
// all-to-all, which also have size = n x count x element. Counts that contradict the columns are
// dropped; unknown ones are 0 or empty.

// Reads all tables of a file that hold a row, in order. Throws InputError, listing the expected
// formats, if there is none.
std::vector<cost::MeasuredTable> read_nccl_log(const std::string& path);

// Returns the tables of a text; `name` is the file's in messages.
std::vector<cost::MeasuredTable> nccl_log_from_text(const std::string& name, std::string_view text);

// Returns the text of a file, unpacked if it is gzipped (by its first two bytes). Throws
// InputError, naming `path`, if the gzip data is damaged, cut off or larger than 1 GiB unpacked.
std::string unpack_gzip(const std::string& path, std::string bytes);

}  // namespace syncline::calibrate
