#include "core/scenario/scenario.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace syncline {

const Strategy* find_strategy(const Scenario& scenario, std::string_view name) {
  const auto it = std::find_if(scenario.strategies.begin(), scenario.strategies.end(),
                               [&](const Strategy& strategy) { return strategy.name == name; });
  return it == scenario.strategies.end() ? nullptr : &*it;
}

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
