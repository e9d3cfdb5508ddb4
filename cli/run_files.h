// What `syncline run` writes beside its answer: --trace, --html and the folder of --out.
#pragma once

#include <vector>

#include "cli/files.h"
#include "cli/run.h"
#include "core/measure/report.h"
#include "reports/answer.h"

namespace syncline::cli {

// Makes the folder, and throws MachineError where a file cannot be written: before the work.
void expect_writable_files(const RunOptions& options);

// `traced` and `answer` must outlive the files.
std::vector<SideFile> side_files(const RunOptions& options, const measure::Report& traced,
                                 const reports::Answer& answer);

}  // namespace syncline::cli
