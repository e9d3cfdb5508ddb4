// Draws of a scenario's uncertain inputs, the same for each of its strategies: inputs that two rows
// share do not change which is faster.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "studies/rows/interval.h"
#include "studies/rows/uncertainty.h"

namespace syncline::measure {

// One draw, in standard deviations: above 0 is slower.
struct Draw {
  std::array<double, kUncertainties> inputs{};
  std::array<double, kGuessedKinds> ways{};  // what large messages of one kind take by themselves
};

// Returns 32 draws, the same each time. Each input has one in each of 32 equally likely ranges, and
// half of the draws mirror the other half.
const std::vector<Draw>& common_draws();

// Returns the factor of a draw between the two ends of an 80 % interval, each a factor too.
double factor_between(double faster, double slower, double deviations);

// Returns the 80 % interval of ratios whose logarithms differ by these draws from that of `ratio`,
// with an independent error of that deviation of each.
Interval interval_of_draws(double ratio, const std::vector<double>& draws, double own);

}  // namespace syncline::measure
