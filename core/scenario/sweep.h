// The points of a sweep, each made when it is asked for: a million of them take no memory.
#pragma once

#include <cstddef>

#include "core/scenario/scenario.h"

namespace syncline {

class Sweep {
 public:
  Sweep() = default;  // one point, without values
  explicit Sweep(const Scenario& scenario);

  // At least 1.
  std::size_t size() const;
  // All combinations of the axes' values, the first axis outermost. Requires index < size().
  SweepPoint point(std::size_t index) const;

 private:
  std::vector<std::pair<std::string, std::vector<Json>>> axes_;
};

}  // namespace syncline
