// The pictures of `tune`.
#pragma once

#include <vector>

#include "reports/page.h"
#include "studies/tune/tuning.h"

namespace syncline::reports {

// Returns the step over the size of buckets, with what is as good as the best and the frameworks'
// defaults; where the step of the best few goes.
std::vector<Illustration> figures_of(const tune::Tuning& tuning);

// Step time over the size of a bucket alone.
chart::Figure size_figure(const tune::Tuning& tuning);

}  // namespace syncline::reports
