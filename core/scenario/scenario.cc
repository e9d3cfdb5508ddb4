#include "core/scenario/scenario.h"

#include <nlohmann/json.hpp>

namespace syncline {

std::vector<SweepPoint> sweep_points(const Scenario& scenario) {
  std::vector<SweepPoint> points{{}};
  for (const auto& [path, values] : scenario.sweep) {
    std::vector<SweepPoint> longer;
    longer.reserve(points.size() * values.size());
    for (const auto& point : points) {
      for (const auto& value : values) {
        longer.push_back(point);
        longer.back().emplace_back(path, value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

}  // namespace syncline
