// What a tuning says: the best strategies, how good they are, why, and where others would pay. The
// same content for a terminal, as Markdown, as CSV (one line a strategy) and as JSON.
#pragma once

#include <string>
#include <vector>

#include "core/tune/tuning.h"

namespace syncline {

// Plain sentences, the most important first.
std::vector<std::string> tune_verdicts(const Tuning& tuning);

std::string tune_text(const Tuning& tuning);  // with the curve as a plot
std::string tune_markdown(const Tuning& tuning);
std::string tune_csv(const Tuning& tuning);

// {"best": {strategy}, "step_time_s", "baseline_s", "optimum_s", "lower_bound_s", "regret_percent",
//  "evaluations", "curve": [{"bytes", "step_time_s"}], "verdicts": [...]}; with an emitted
// configuration also "emitted": {"dialect", "config", "step_time_s", "exact", "difference"}.
std::string tune_json(const Tuning& tuning);

}  // namespace syncline
