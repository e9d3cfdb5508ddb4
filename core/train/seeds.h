// What several seeds say together: a mean with its spread, and whether two methods differ.
#pragma once

#include <vector>

namespace syncline::train {

struct SeedMean {
  double mean = 0;
  double deviation = 0;  // of a single seed (n - 1 in the denominator); 0 for one seed
};
// Requires at least one value.
SeedMean mean_of_seeds(const std::vector<double>& values);

// The mean of the differences value - base, seed by seed, with half the width of its 95 % interval
// by Student's t; infinite for a single seed, which says nothing of noise.
struct PairedDifference {
  double mean = 0;
  double half_width = 0;

  bool within_noise() const { return mean - half_width <= 0 && mean + half_width >= 0; }
};
// Requires as many values as bases, at least one.
PairedDifference paired_difference(const std::vector<double>& values,
                                   const std::vector<double>& bases);

}  // namespace syncline::train
