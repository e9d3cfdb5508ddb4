// Bars of a step: where its time goes, strategy by strategy.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/metrics.h"
#include "reports/chart/figure.h"
#include "studies/rows/interval.h"

namespace syncline::reports {

// At most so many bars, lines in colours of their own, lines at all, and rows and columns of a heat
// map; what is beyond is left out, lines are grey.
inline constexpr std::size_t kBarStrategies = 16;
inline constexpr std::size_t kToldApart = 7;
inline constexpr std::size_t kLines = 200;
inline constexpr std::size_t kHeatStrategies = 24;
inline constexpr std::size_t kHeatPoints = 60;

// A step's time by cause, as bars do: computation, handling of gradients, what of communication is
// exposed, and below them what is hidden.
struct StepParts {
  std::string name;
  measure::Metrics metrics;
  measure::Interval interval = {};  // 80 % of the step time; both ends 0 where there is none
  bool best = false;
};
// Returns the fastest on top, whatever their order.
chart::Figure step_bars(std::vector<StepParts> strategies);

// One of several values, over five times their median, would flatten the others.
bool outlying(std::vector<double> values);
// Returns whether a point of the series lies so.
bool outlying(const std::vector<chart::Series>& series);

// Returns a lane below those that are there; gives its number.
int add_lane(chart::Figure& figure, const std::string& name, const measure::Interval& interval = {},
             bool best = false);
// Breaks bars that are outlying, so that the others have room, and says what strokes and stars are.
void finish_bars(chart::Figure& figure);
void drop_unused_keys(chart::Figure& figure);

}  // namespace syncline::reports
