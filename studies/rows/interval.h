// Interval of a predicted figure.
#pragma once

namespace syncline::measure {

// Ends in the figure's unit; holds the true value in 80 % of cases unless another share is given.
struct Interval {
  double low = 0;
  double high = 0;
};

}  // namespace syncline::measure
