// The answer of `syncline run`: a report as a page, as rows for spreadsheets, as JSON.
#pragma once

#include <string>

#include "formats/json/json.h"
#include "reports/answer.h"
#include "reports/page.h"
#include "studies/rows/report.h"

namespace syncline::reports {

// Returns the rows; beside them, where somebody published figures, those and the error of the
// prediction (of the step time, else the throughput, else the speedup, else the collectives: the
// first that was published). Then what was fitted, what the table shows, and where the figures come
// from.
Page page_of(const measure::Report& report);
// Returns the verdict first, then the rows with how fast they are and what communication they
// expose.
Page brief_of(const measure::Report& report);

Json json_of(const measure::Report& report);

// Returns all three.
Answer answer_of(const measure::Report& report);

// Where the figures come from, in sentences. Which executor predicted the figures, and what they
// were fitted to.
std::string figures_sentence(const measure::Report& report);

// Which strategies change the training itself, about whose accuracy nothing is said. Empty if none.
std::string accuracy_sentence(const measure::Report& report);

// Returns how far predictions are from published figures: those used for the fit, those not used,
// and each left out in turn. Empty where nothing was published to compare with.
std::string agreement_sentence(const measure::Report& report);

}  // namespace syncline::reports
