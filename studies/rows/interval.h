// The two ends between which a figure lies.
#pragma once

namespace syncline::measure {

// In the figure's own unit; 80 % of what is to be expected unless said otherwise.
struct Interval {
  double low = 0;
  double high = 0;
};

}  // namespace syncline::measure
