#include "core/train/seeds.h"

#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/statistics.h"

namespace syncline::train {

SeedMean mean_of_seeds(const std::vector<double>& values) {
  SeedMean result{mean(values), 0};
  if (values.size() > 1) result.deviation = sample_deviation(values);
  return result;
}

PairedDifference paired_difference(const std::vector<double>& values,
                                   const std::vector<double>& bases) {
  assert(values.size() == bases.size());
  std::vector<double> differences;
  for (std::size_t i = 0; i < values.size(); ++i) differences.push_back(values[i] - bases[i]);
  const SeedMean both = mean_of_seeds(differences);
  if (differences.size() == 1) return {both.mean, std::numeric_limits<double>::infinity()};
  const auto count = static_cast<double>(differences.size());
  constexpr double kShare = 0.95;
  return {both.mean, student_t(kShare, count - 1) * both.deviation / std::sqrt(count)};
}

}  // namespace syncline::train
