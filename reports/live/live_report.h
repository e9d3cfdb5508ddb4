// The answer of a search on machines, and its picture.
#pragma once

#include <vector>

#include "reports/answer.h"
#include "studies/machines/live_tuner.h"

namespace syncline::reports {

// What a search on a machine says: its answer, every evaluation in order, and where the figures
// come from. The same text whether the search ran in one go or was resumed.
Answer answer_of(const tune::LiveReport& report);

// Returns the search, evaluation by evaluation.
std::vector<Illustration> figures_of(const tune::LiveReport& report);

}  // namespace syncline::reports
