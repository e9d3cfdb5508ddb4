#include "formats/scenario/scenario.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace syncline {

const Strategy* find_strategy(const Scenario& scenario, std::string_view name) {
  const auto it = std::find_if(scenario.strategies.begin(), scenario.strategies.end(),
                               [&](const Strategy& strategy) { return strategy.name == name; });
  return it == scenario.strategies.end() ? nullptr : &*it;
}

std::vector<SweepPoint> sweep_points(const Scenario& scenario) {
  const Sweep sweep(scenario);
  std::vector<SweepPoint> points;
  for (std::size_t i = 0; i < sweep.size(); ++i) points.push_back(sweep.point(i));
  return points;
}

Sweep::Sweep(const Scenario& scenario) : axes_(scenario.sweep) {}

std::size_t Sweep::size() const {
  std::size_t points = 1;
  for (const auto& [path, values] : axes_) points *= values.size();
  return points;
}

SweepPoint Sweep::point(std::size_t index) const {
  SweepPoint point;
  std::size_t inner = size();
  for (const auto& [path, values] : axes_) {
    inner /= values.size();
    point.emplace_back(path, values[index / inner % values.size()]);
  }
  return point;
}

}  // namespace syncline
