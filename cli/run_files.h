// What `syncline run` writes beside its answer: --trace, --html and the folder of --out.
#pragma once

#include <optional>
#include <vector>

#include "cli/files.h"
#include "cli/run.h"
#include "core/measure/report.h"
#include "core/run/shards.h"
#include "reports/answer.h"

namespace syncline::cli {

// Makes the folders, and throws MachineError where a file cannot be written: before the work. Of
// ranks that share it, rank 0 alone writes.
void expect_writable_files(const RunOptions& options, const std::optional<run::Shard>& shard);

// `traced` and `answer` must outlive the files.
std::vector<SideFile> side_files(const RunOptions& options, const measure::Report& traced,
                                 const reports::Answer& answer);

}  // namespace syncline::cli
