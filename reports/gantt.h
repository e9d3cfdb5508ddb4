// Who does what when, as a picture: streams as lanes, operations as bars, strategies under each
// other on one time axis.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/page.h"
#include "studies/rows/report.h"

namespace syncline::reports {

// Lanes of a strategy and bars of all lanes at most; beyond these, lanes are left out, and short
// neighbours drawn as one bar in the colour of the longest.
inline constexpr std::size_t kGanttLanes = 12;
inline constexpr std::size_t kGanttBars = 4000;

// Returns the last period of each of the report's traced timelines named by `which`: a step in
// steady state. Time counts from the end of the period before. Each bucket's bars lead to its line
// in the table.
Illustration gantt(const measure::Report& report, const std::vector<std::size_t>& which);

// Of timelines in pairs, the first six: a step as it was predicted, and below it as it was
// measured.
std::vector<Illustration> gantt_pairs(const measure::Report& report);

}  // namespace syncline::reports
