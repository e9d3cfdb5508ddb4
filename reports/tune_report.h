// What a tuning says: the best strategies, how good they are, why, and where others would pay. The
// same content for a terminal, as Markdown, as CSV (one line a strategy) and as JSON.
#pragma once

#include <string>
#include <vector>

#include "core/tune/tuning.h"
#include "reports/answer.h"

namespace syncline::reports {

// Plain sentences, the most important first.
std::vector<std::string> tune_verdicts(const tune::Tuning& tuning);

// The page has the curve as a plot, the CSV one line a strategy. JSON: {"best": {strategy},
// "step_time_s", "baseline_s", "optimum_s", "lower_bound_s", "ranking": [{"strategy", ...}],
// "regret_percent", "evaluations", "searched", "curve": [{"bytes", "step_time_s"}],
// "verdicts": [...], "provenance"}; with an emitted configuration also "emitted": {"dialect",
// "config", "step_time_s", "exact", "difference"}. The tuning must outlive the answer.
Answer answer_of(const tune::Tuning& tuning);

}  // namespace syncline::reports
