// The pictures of `run`. What is left out for want of room is in a figure's note.
#pragma once

#include <vector>

#include "reports/page.h"
#include "studies/rows/report.h"

namespace syncline::reports {

// Where each strategy's step goes, what the sweep does to it, how near the predictions come to
// published figures, and, where timelines were kept, a step of the baseline and of the fastest.
std::vector<Illustration> figures_of(const measure::Report& report);

}  // namespace syncline::reports
