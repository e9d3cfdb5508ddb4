// Order statistics, for whoever sums up errors or measurements.
#pragma once

#include <vector>

namespace syncline {

// The value below which a share of the values lies; between two ranks on the straight line.
// Requires values.
double percentile(std::vector<double> values, double share);

// The median; of an even number of values the larger of the middle two, so that it is one of them.
// Requires values.
double middle_of(std::vector<double> values);

}  // namespace syncline
