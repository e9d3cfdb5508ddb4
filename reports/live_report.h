// What a search on a machine says: its answer, every evaluation in order, and where the figures
// come from. The same text whether the search ran in one go or was resumed.
#pragma once

#include <string>

#include "core/tune/live_report.h"

namespace syncline {

std::string live_text(const LiveReport& report);
std::string live_markdown(const LiveReport& report);
// One line an evaluation.
std::string live_csv(const LiveReport& report);
// {"best": {strategy}, "step_time_s", "relative_deviation", "evaluations", "complete", "source",
//  "observations": [{"candidate", "step_time_s", "standard_error_s"}], "verdicts": [...]}; of an
// emulated machine also "true_step_time_s", "regret_percent" (over the best candidate) and
// "baseline_s"; with an emitted configuration also "emitted".
std::string live_json(const LiveReport& report);

}  // namespace syncline
