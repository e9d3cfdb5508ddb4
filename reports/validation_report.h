// What was predicted beside what was measured: the answers of `syncline validate` and `fidelity`.
#pragma once

#include <string>
#include <vector>

#include "core/json/json.h"
#include "core/measure/fidelity.h"
#include "core/measure/validation.h"
#include "core/measure/validation_file.h"
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

// The rows of several live runs in one table: what was predicted, then measured.
// JSON: {"rows": [{"scenario", "ranks", "strategy", "predicted_s", ...}], "median_error_percent",
// ...}. The files must outlive the answer.
Answer answer_of(const std::vector<measure::LiveFile>& files);

// The fidelity page: every published table with the errors of its calibrated and of its predicted
// rows, and one line overall (fidelity.cc). Tables are grouped by set, in the order given. JSON:
// {"tables": [{"set", "name", "calibrated_rows", "predicted_rows", "median_error_percent",
// "p90_error_percent", "worst_error_percent", "inside_interval_percent", "median_interval_percent",
// "in_range"}], "overall": {"tables", "predicted_rows", the same five}}. Errors are those of the
// predicted rows; a table without any has null there. `overall` is over the tables in range, its
// share inside the 80 % interval and median width over all. The tables must outlive the answer.
Answer answer_of(const std::vector<measure::FidelityTable>& tables);

}  // namespace syncline::reports
