// What is said of a strategy that was written as a framework's configuration, or as a Python file
// that applies it to a PyTorch job.
#pragma once

#include <string>
#include <vector>

#include "formats/dialect/write.h"
#include "reports/page.h"
#include "studies/rows/uncertainty.h"
#include "studies/tune/tuning.h"

namespace syncline::reports {

// What has to stand beside the configuration, and what runs in its place elsewhere: sentences.
std::vector<std::string> notes_on(const dialect::Written& written);

// Those of them that follow from the configuration alone.
std::vector<std::string> notes_on(const Json& config);

// The same of what a search writes: on its page, and "emitted" of its JSON.
void add_configuration(Page& page, const std::string& dialect, const tune::Emitted& emitted);
Json emitted_json(const std::string& dialect, const tune::Emitted& emitted);

// Returns the comment above the strategy's table in the Python file: what it does and what it was
// predicted to gain. `fit_errors`: of the scenario's calibration.
std::string applied_comment(const Scenario& scenario, const Strategy& strategy,
                            const measure::FitErrors& fit_errors);

// What a job does with the file: "in the job, on every rank: from NAME import apply; ...".
std::string apply_usage(const std::string& file, const Strategy& strategy);

// That the file holds another strategy than the search chose, and why; empty where it holds the
// choice.
std::string applied_instead(const std::string& file, const tune::Tuning& tuning,
                            const tune::Ranked& applied);

}  // namespace syncline::reports
