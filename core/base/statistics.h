// Order statistics and the distributions behind intervals and expectations. Boost.Math computes
// what it has; its headers stay in the source.
#pragma once

#include <functional>
#include <vector>

namespace syncline {

// The value below which a share of the values lies; between two ranks on the straight line.
// Requires values.
double percentile(std::vector<double> values, double share);

// Returns the middle value; of an even number of values the mean of the middle two. Requires
// values.
double median(std::vector<double> values);

// Requires values.
double mean(const std::vector<double>& values);

// Returns the standard deviation of what the values are a sample of (n - 1 in the denominator).
// Requires two values or more.
double sample_deviation(const std::vector<double>& values);

// Returns the noise of one time, from the ratios of two measurements of the same; 0 for none.
double noise_of_repeats(const std::vector<double>& ratios);

// Returns how far the median of such times may be off: the standard deviation of its logarithm, of
// normally distributed logarithms 1.2533 / sqrt(n) times that of one, which is taken from their
// median distance. At least a ten-thousandth: times that agree to the last digit were not measured
// so well. 0 of fewer than three times, which tell nothing.
double spread_of_median(const std::vector<double>& times);

// Returns the standard normal distribution at z, all digits of its lower tail included, and its
// density.
double normal_distribution(double z);
double normal_density(double z);

struct Moments {
  double mean = 0;
  double deviation = 0;
};

// Of the largest of n independent draws, none of which is below `low` or above `high`, by adaptive
// Gauss-Kronrod quadrature. `above` is 1 minus their distribution, with its digits where that is
// almost 0.
Moments largest_of(const std::function<double(double)>& above, int n, double low, double high);
Moments largest_of_normals(int n);  // standard ones

// Half the width of the central interval that holds this share of Student's t distribution, in
// standard errors: 12.706 for 95 % and one degree of freedom. Requires one degree or more.
double student_t(double share, double degrees_of_freedom);

}  // namespace syncline
