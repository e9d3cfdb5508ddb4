#include "core/statistics.h"

#include <algorithm>
#include <cassert>

namespace syncline {

double percentile(std::vector<double> values, double share) {
  assert(!values.empty() && "no values have no percentile");
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double part = place - static_cast<double>(below);
  return values[below] + part * (values[above] - values[below]);
}

double middle_of(std::vector<double> values) {
  assert(!values.empty() && "no values have no median");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace syncline
