#include "core/scenario/sweep.h"

#include <nlohmann/json.hpp>

namespace syncline {

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
