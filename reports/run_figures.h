// The pictures of `run`. A figure's note says which parts were left out for want of room.
#pragma once

#include <vector>

#include "reports/page.h"
#include "studies/rows/report.h"

namespace syncline::reports {

// Returns bars of each strategy's step, its curves over the sweep, predicted over published
// figures. With timelines, also a step of the baseline and of the fastest.
std::vector<Illustration> figures_of(const measure::Report& report);

}  // namespace syncline::reports
