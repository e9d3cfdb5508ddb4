// The pictures of `tune`.
#pragma once

#include <vector>

#include "reports/page.h"
#include "studies/tune/tuning.h"

namespace syncline::reports {

// Returns step time over bucket size, with the sizes as good as the best and the frameworks'
// defaults. Also the parts of the best strategies' steps.
std::vector<Illustration> figures_of(const tune::Tuning& tuning);

// Returns the chart of step time over bucket size alone.
chart::Figure size_figure(const tune::Tuning& tuning);

}  // namespace syncline::reports
