// The answer of `syncline explain`: in words what each strategy does, what it is bound by, and
// which changes would gain most.
#pragma once

#include "core/measure/explanation.h"
#include "reports/answer.h"

namespace syncline::reports {

// CSV: one line a strategy and change, with an empty change where none is worth making. JSON, in
// seconds, bytes and shares of a step from 0 to 1:
//   strategies  name, dialect; what a row of `run` has under the same names: step_time_s to
//               lower_bound_s, step_time_low_s and step_time_high_s (80 %), memory_bytes; of
//               several ranks bound_by and shares {computation, stragglers, overhead, latency,
//               bandwidth}; notes; advice
//               [{change, step_time_s, gain_percent, changes_training, training}]
//   provenance  executor, workload, cluster
// The explanation must outlive the answer.
Answer answer_of(const measure::Explanation& explanation);

}  // namespace syncline::reports
