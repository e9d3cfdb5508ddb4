// What is said of a strategy that a Python file applies to a PyTorch job.
#pragma once

#include <string>

#include "core/measure/doubt.h"
#include "core/tune/tuning.h"

namespace syncline::reports {

// The comment above the strategy's table in the file: what it does and what it was predicted to
// gain. `pinned`: what the scenario's calibration pinned down.
std::string applied_comment(const Scenario& scenario, const Strategy& strategy,
                            const measure::Pinned& pinned);

// What a job does with the file: "in the job, on every rank: from NAME import apply; ...".
std::string apply_usage(const std::string& file, const Strategy& strategy);

// That the file holds another strategy than the search chose, and why; empty where it holds the
// choice.
std::string applied_instead(const std::string& file, const tune::Tuning& tuning,
                            const tune::Ranked& applied);

}  // namespace syncline::reports
