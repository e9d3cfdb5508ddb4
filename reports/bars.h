// Bars of a step: its time by cause, one bar per strategy.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/metrics.h"
#include "reports/chart/figure.h"
#include "studies/rows/interval.h"

namespace syncline::reports {

// Limits of a figure: bars, lines with a colour each (the others are grey), lines, and rows and
// columns of a heat map.
inline constexpr std::size_t kBarStrategies = 16;
inline constexpr std::size_t kToldApart = 7;
inline constexpr std::size_t kLines = 200;
inline constexpr std::size_t kHeatStrategies = 24;
inline constexpr std::size_t kHeatPoints = 60;

// A step's time by cause, as bars show it: computation, handling of gradients and exposed
// communication; hidden communication below them.
struct StepParts {
  std::string name;
  measure::Metrics metrics;
  measure::Interval interval = {};  // 80 % of the step time; both ends 0: unknown
  bool best = false;
};
// Returns a figure of bars, the fastest on top, in any order of `strategies`.
chart::Figure step_bars(std::vector<StepParts> strategies);

// Returns true if the largest value is over five times the median: it would flatten the others.
bool outlying(std::vector<double> values);
// Returns true if a point of the series is an outlier in this sense.
bool outlying(const std::vector<chart::Series>& series);

// Adds a lane below the present ones and returns its number.
int add_lane(chart::Figure& figure, const std::string& name, const measure::Interval& interval = {},
             bool best = false);
// Breaks outlying bars, so that the others have room, and explains strokes and stars in the note.
void finish_bars(chart::Figure& figure);
void drop_unused_keys(chart::Figure& figure);

}  // namespace syncline::reports
