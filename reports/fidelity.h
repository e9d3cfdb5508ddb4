// The fidelity page: every published table with the errors of its calibrated and of its predicted
// rows, and one line overall; for people (text, Markdown) and for programs (JSON).
#pragma once

#include <string>
#include <vector>

#include "core/measure/fidelity.h"
#include "reports/answer.h"

namespace syncline::reports {

// Tables are grouped by set, in the order given. JSON:
// {"tables": [{"set", "name", "calibrated_rows", "predicted_rows", "median_error_percent",
// "p90_error_percent", "worst_error_percent", "inside_interval_percent", "median_interval_percent",
// "in_range"}], "overall": {"tables", "predicted_rows", the same five}}. Errors are those of the
// predicted rows; a table without any has null there. `overall` is over the tables in range, its
// share inside the 80 % interval and median width over all. The tables must outlive the answer.
Answer answer_of(const std::vector<measure::FidelityTable>& tables);

}  // namespace syncline::reports
