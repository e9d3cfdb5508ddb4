// Order statistics, and the distributions of intervals and expectations. Boost.Math computes some;
// its headers stay in the source.
#pragma once

#include <functional>
#include <vector>

namespace syncline {

// Returns the value below which a share of the values lies, by linear interpolation between ranks.
// Requires values.
double percentile(std::vector<double> values, double share);

// Returns the middle value; of an even number of values the mean of the middle two. Requires
// values.
double median(std::vector<double> values);

// Returns the mean. Requires values.
double mean(const std::vector<double>& values);

// Returns the standard deviation of the population that was sampled (n - 1 in the denominator).
// Requires two values or more.
double sample_deviation(const std::vector<double>& values);

// Returns the standard deviation of the logarithm of one measured time. `ratios`: of two
// measurements of the same quantity; 0 without ratios.
double noise_of_repeats(const std::vector<double>& ratios);

// Returns the uncertainty of the median of repeated times: the standard deviation of its logarithm,
// 1.2533 / sqrt(n) times that of one time (normal logarithms). That of one time is estimated by the
// median absolute deviation. At least 1e-4, because times that agree to the last digit were not
// measured so well; 0 for fewer than three times.
double spread_of_median(const std::vector<double>& times);

// Returns the standard normal distribution at z, exact in its lower tail too, and its density.
double normal_distribution(double z);
double normal_density(double z);
// The z below which that share lies. Requires a share between 0 and 1.
double normal_quantile(double share);

struct Moments {
  double mean = 0;
  double deviation = 0;
};

// Returns the moments of the largest of n independent draws between `low` and `high`, by adaptive
// Gauss-Kronrod quadrature. `above(x)`: the chance that one draw exceeds x. Requires that it is
// exact near 0 too, unlike 1 - distribution(x).
Moments largest_of(const std::function<double(double)>& above, int n, double low, double high);
Moments largest_of_normals(int n);  // standard ones

// Returns half the width of the central interval with this share of Student's t distribution, in
// standard errors: 12.706 for 95 % and one degree of freedom. Requires one degree or more.
double student_t(double share, double degrees_of_freedom);

}  // namespace syncline
