// What a search on a machine says: its answer, every evaluation in order, and where the figures
// come from. The same text whether the search ran in one go or was resumed.
#pragma once

#include <string>

#include "core/tune/live_report.h"
#include "reports/answer.h"

namespace syncline::reports {

// CSV: one line an evaluation. JSON: {"best": {strategy}, "step_time_s", "relative_deviation",
// "evaluations", "complete", "source", "observations": [{"candidate", "step_time_s",
// "standard_error_s"}], "verdicts": [...], "provenance"}; of an emulated machine also
// "true_step_time_s", "regret_percent" (over the best candidate) and "baseline_s"; with an emitted
// configuration also "emitted". The report must outlive the answer.
Answer answer_of(const tune::LiveReport& report);

}  // namespace syncline::reports
