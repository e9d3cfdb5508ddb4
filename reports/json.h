// A report for programs: one JSON object. Fields that do not apply are left out; the same report
// produces the same bytes. Units are SI: seconds, bytes, samples per second; errors in percent.
//   scenario, version
//   complete     false where the run was interrupted, otherwise absent
//   rows         strategy, executor, sweep {path: value}, the figures of reports/fields.h; where
//                somebody published some: published {figures, buckets, use, source, note},
//                error_percent, left_out_error_percent, buckets [[tensors, MiB], ...]
//   calibration  parameters {path: value}, where some were fitted; or parts [{at, parameters}]
//                where parts of the sweep were fitted on their own
//   splits       left_out, parameters, rows: refits with something left out
//   provenance   executor, baseline, workload, cluster, seed, sources, figures (a sentence)
#pragma once

#include <string>

#include "core/measure/report.h"

namespace syncline {

std::string json_report(const Report& report);

}  // namespace syncline
