// Charts of operations over time: streams are lanes, operations bars, strategies below each other
// on one time axis.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/page.h"
#include "studies/rows/report.h"

namespace syncline::reports {

// Limits: lanes of a strategy, and bars of all lanes. Further lanes are left out, and short
// neighbours become one bar in the colour of the longest.
inline constexpr std::size_t kGanttLanes = 12;
inline constexpr std::size_t kGanttBars = 4000;

// Returns the last period of each of the report's traced timelines with an index in `which`: a step
// in steady state. Time counts from the end of the period before. Each bucket's bars link to its
// line in the table.
Illustration gantt(const measure::Report& report, const std::vector<std::size_t>& which);

// Returns charts of timelines in pairs, the first six: a step as predicted, and below it as
// measured.
std::vector<Illustration> gantt_pairs(const measure::Report& report);

}  // namespace syncline::reports
