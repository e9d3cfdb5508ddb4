// The answer of `syncline calibrate --steps`: each measured step as predicted before and after, and
// what the device was found to lose.
#pragma once

#include "core/calibrate/step_fit.h"
#include "reports/answer.h"

namespace syncline::reports {

// JSON: {"rows": [{"row", "measured_s", "before_s", "after_s", "before_error_percent",
// "after_error_percent", "fitted"}], "values": [{"key" (of cluster.device, in its unit), "before",
// "value", "low", "high" (the 80 % interval), "told" (whether the rows say anything of it)}],
// "notes"}. CSV: the rows. The fit must outlive the answer.
Answer answer_of(const calibrate::StepFit& fit);

}  // namespace syncline::reports
