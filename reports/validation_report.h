// The answer of `syncline validate`.
#pragma once

#include "core/json/json.h"
#include "core/measure/validation.h"
#include "reports/answer.h"

namespace syncline {

// JSON: {"date", "workload", "cluster", "backend", "ranks", "baseline", "executor",
// "rows": [{"strategy", "predicted_s", "measured_median_s", ...}], "hardware", "links", ...}.
// The validation must outlive the answer.
Answer answer_of(const Validation& validation);

// Only the samples by which links were calibrated; JSON holds the cluster too. Both must outlive
// the answer.
Answer links_answer(const Validation& validation, const Json& cluster);

}  // namespace syncline
