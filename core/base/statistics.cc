#include "core/base/statistics.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/statistics/univariate_statistics.hpp>
#include <cassert>
#include <cmath>

namespace syncline {

// Boost.Accumulators estimates a quantile of a stream of values; here all of them are available.
double percentile(std::vector<double> values, double share) {
  assert(!values.empty() && "no values have no percentile");
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double part = place - static_cast<double>(below);
  return values[below] + part * (values[above] - values[below]);
}

double median(std::vector<double> values) {
  assert(!values.empty() && "no values have no median");
  return boost::math::statistics::median(values);
}

double mean(const std::vector<double>& values) {
  assert(!values.empty() && "no values have no mean");
  return boost::math::statistics::mean(values);
}

double sample_deviation(const std::vector<double>& values) {
  assert(values.size() > 1 && "one value tells nothing of a spread");
  return std::sqrt(boost::math::statistics::sample_variance(values));
}

double noise_of_repeats(const std::vector<double>& ratios) {
  if (ratios.empty()) return 0;
  constexpr double kMedian = 0.954;  // of |a - b| for normal a and b with deviation 1
  std::vector<double> apart;
  for (const double ratio : ratios) apart.push_back(std::abs(std::log(ratio)));
  return median(std::move(apart)) / kMedian;
}

double spread_of_median(const std::vector<double>& times) {
  if (times.size() < 3) return 0;
  constexpr double kNormal = 1.4826;  // a deviation, in median distances
  constexpr double kMedian = 1.2533;
  constexpr double kMin = 1e-4;
  const double middle = median(times);
  std::vector<double> apart;
  for (const double time : times) apart.push_back(std::abs(std::log(time / middle)));
  const double one = kNormal * median(std::move(apart));
  return std::max(kMin, kMedian * one / std::sqrt(static_cast<double>(times.size())));
}

double normal_distribution(double z) { return cdf(boost::math::normal(), z); }

double normal_density(double z) { return pdf(boost::math::normal(), z); }

double normal_quantile(double share) { return quantile(boost::math::normal(), share); }

double student_t(double share, double degrees_of_freedom) {
  const boost::math::students_t distribution(degrees_of_freedom);
  return quantile(complement(distribution, (1 - share) / 2));
}

// Integrates, with F the distribution F of one draw, M the largest and L `low`:
//   E[M - L] = integral of (1 - F(x)^n) dx,  E[(M - L)^2] = integral of 2 (x - L) (likewise).
Moments largest_of(const std::function<double(double)>& above, int n, double low, double high) {
  using Rule = boost::math::quadrature::gauss_kronrod<double, 31>;
  constexpr unsigned kDeepest = 15;
  constexpr double kClose = 1e-9;
  const auto any_above = [&](double x) { return -std::expm1(n * std::log1p(-above(x))); };
  const auto squared = [&](double x) { return 2 * (x - low) * any_above(x); };
  const double mean = Rule::integrate(any_above, low, high, kDeepest, kClose);
  const double square = Rule::integrate(squared, low, high, kDeepest, kClose);
  return {low + mean, std::sqrt(std::max(0.0, square - mean * mean))};
}

// Draws beyond 12 standard deviations are negligible, for any number of them.
Moments largest_of_normals(int n) {
  if (n == 1) return {0, 1};
  return largest_of([](double z) { return normal_distribution(-z); }, n, -12.0, 12.0);
}

}  // namespace syncline
