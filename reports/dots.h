// Scatter plots of predicted over measured values.
#pragma once

#include <string>
#include <vector>

#include "reports/chart/figure.h"
#include "studies/rows/interval.h"

namespace syncline::reports {

// Adds a predicted over its measured value, with the interval of the prediction.
void add_dot(chart::Series& dots, double measured, double predicted,
             const measure::Interval& interval, const std::string& name);
// Returns a scatter plot with the line of equal values; empty for fewer than two points.
chart::Figure scatter(std::vector<chart::Series> dots, const std::string& across, chart::Unit unit,
                      const char* equal);

}  // namespace syncline::reports
