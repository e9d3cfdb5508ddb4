#include "core/calibrate/tiers.h"

#include <algorithm>
#include <cassert>

namespace syncline {

double bandwidth_factor(const std::vector<MeasuredPoint>& points, BytesPerSecond bandwidth) {
  assert(!points.empty() && "a factor needs a measured point");
  std::vector<double> factors;
  for (const auto& point : points) {
    factors.push_back(point.time * bandwidth / static_cast<double>(point.size));
  }
  const auto middle = factors.begin() + static_cast<std::ptrdiff_t>(factors.size() / 2);
  std::nth_element(factors.begin(), middle, factors.end());
  return *middle;
}

}  // namespace syncline
