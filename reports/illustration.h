// A figure of an answer, and the table of what its parts stand for, to which they link.
#pragma once

#include <string>
#include <vector>

#include "reports/chart/figure.h"
#include "reports/grid.h"

namespace syncline::reports {

struct Illustration {
  chart::Figure figure;
  std::string heading = {};  // of the table; empty: there is none
  Grid details = {};
  std::vector<std::string> ids = {};  // of its lines, for the figure's links
};

}  // namespace syncline::reports
