// Dots: what was predicted over what it is compared with.
#pragma once

#include <string>
#include <vector>

#include "reports/chart/figure.h"
#include "studies/rows/interval.h"

namespace syncline::reports {

// What was predicted over what it is compared with, and how certain it was.
void add_dot(chart::Series& dots, double measured, double predicted,
             const measure::Interval& interval, const std::string& name);
// Such dots, with the line on which both are equal; without anything to show of fewer than two.
chart::Figure scatter(std::vector<chart::Series> dots, const std::string& across, chart::Unit unit,
                      const char* equal);

}  // namespace syncline::reports
