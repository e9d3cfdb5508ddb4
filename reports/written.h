// Notes on a strategy that was written as a framework's configuration, or as a Python file that
// applies it to a PyTorch job.
#pragma once

#include <string>
#include <vector>

#include "formats/dialect/write.h"
#include "reports/page.h"
#include "studies/rows/uncertainty.h"
#include "studies/tune/tuning.h"

namespace syncline::reports {

// Returns notes on a written strategy: its NCCL setting, its configuration, its algorithm.
std::vector<std::string> list_notes(const dialect::Written& written);

// Returns the notes that follow from the configuration alone.
std::vector<std::string> list_notes(const Json& config);

// Adds a search's configuration to the page, or returns it as "emitted" of its JSON.
void add_configuration(Page& page, const std::string& dialect, const tune::Emitted& emitted);
Json emitted_json(const std::string& dialect, const tune::Emitted& emitted);

// Returns the comment above the strategy's table in the Python file: its effect and its predicted
// gain. `fit_errors`: errors of the scenario's calibration.
std::string applied_comment(const Scenario& scenario, const Strategy& strategy,
                            const measure::FitErrors& fit_errors);

// Returns how a job uses the file: "in the job, on every rank: from NAME import apply; ...".
std::string apply_usage(const std::string& file, const Strategy& strategy);

// Returns that the file holds another strategy than the search chose, and why; empty if it holds
// the choice.
std::string other_strategy_note(const std::string& file, const tune::Tuning& tuning,
                                const tune::Ranked& applied);

}  // namespace syncline::reports
