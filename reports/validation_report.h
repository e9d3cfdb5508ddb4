// The answer of `syncline validate`.
#pragma once

#include <string>

#include "core/json/json.h"
#include "core/measure/validation.h"
#include "core/scenario/cluster.h"
#include "reports/answer.h"

namespace syncline::reports {

// JSON: {"date", "workload", "cluster", "backend", "ranks", "baseline", "executor",
// "rows": [{"strategy", "predicted_s", "measured_median_s", ...}], "hardware", "links", ...}.
// The validation must outlive the answer.
Answer answer_of(const measure::Validation& validation);

// Latency and bandwidth of each tier, and what a collective and encoding cost besides.
std::string links_in_words(const Cluster& cluster);

// Only the samples by which links were calibrated; JSON holds the cluster too. Both must outlive
// the answer.
Answer links_answer(const measure::Validation& validation, const Json& cluster);

}  // namespace syncline::reports
