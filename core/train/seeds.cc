#include "core/train/seeds.h"

#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>

namespace syncline {
namespace {

// Student's t at 97.5 %, by degrees of freedom from 1 on; beyond the table it is hardly above the
// normal distribution's 1.96.
double student(std::size_t freedom) {
  constexpr std::array kTable{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                              2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                              2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  if (freedom == 0) return std::numeric_limits<double>::infinity();
  return freedom <= kTable.size() ? kTable.at(freedom - 1) : 2.08;
}

}  // namespace

SeedMean mean_of_seeds(const std::vector<double>& values) {
  assert(!values.empty());
  const auto count = static_cast<double>(values.size());
  SeedMean result;
  for (const double value : values) result.mean += value / count;
  if (values.size() == 1) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / (count - 1));
  return result;
}

PairedDifference paired_difference(const std::vector<double>& values,
                                   const std::vector<double>& bases) {
  assert(values.size() == bases.size());
  std::vector<double> differences;
  for (std::size_t i = 0; i < values.size(); ++i) differences.push_back(values[i] - bases[i]);
  const SeedMean mean = mean_of_seeds(differences);
  const double error = mean.deviation / std::sqrt(static_cast<double>(values.size()));
  const double t = student(values.size() - 1);
  return {mean.mean, std::isinf(t) ? t : t * error};
}

}  // namespace syncline
