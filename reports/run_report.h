// The answer of `syncline run`: a report as a page, as rows for spreadsheets, as JSON.
#pragma once

#include <string>

#include "formats/json/json.h"
#include "reports/answer.h"
#include "reports/page.h"
#include "studies/rows/report.h"

namespace syncline::reports {

// Returns the rows, with published figures and the error of the prediction if there are any. The
// error is that of the first published figure: step time, throughput, speedup, collectives. Then
// the fit, the verdict, and the sources of the figures.
Page page_of(const measure::Report& report);
// Returns the verdict, then the rows with their speed and exposed communication.
Page brief_of(const measure::Report& report);

Json json_of(const measure::Report& report);

// Returns the answer of `run`: its pages, JSON, rows and figures.
Answer answer_of(const measure::Report& report);

// Returns sentences on the sources of the figures: the executor, and the rows of the fit.
std::string figures_sentence(const measure::Report& report);

// Returns a sentence on strategies that change the training: accuracy is not predicted. Else empty.
std::string accuracy_sentence(const measure::Report& report);

// Returns the errors of predictions against published figures: those of the fit, the others, and
// with each left out in turn. Empty if there are no published figures.
std::string agreement_sentence(const measure::Report& report);

}  // namespace syncline::reports
