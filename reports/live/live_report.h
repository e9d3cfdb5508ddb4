// The answer of a search on machines, and its picture.
#pragma once

#include <vector>

#include "reports/answer.h"
#include "studies/machines/live_tuner.h"

namespace syncline::reports {

// Returns the answer of a search on a machine: the best, every evaluation in order, and the source
// of the figures. A resumed search gives the same text as one without a break.
Answer answer_of(const tune::LiveReport& report);

// Returns a chart of the step times, evaluation by evaluation.
std::vector<Illustration> figures_of(const tune::LiveReport& report);

}  // namespace syncline::reports
