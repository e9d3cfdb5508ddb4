#include "core/job/observed.h"

#include <algorithm>

namespace syncline::job {

const Step& typical_step(const Rank& rank) {
  std::vector<const Step*> steps;
  for (const Step& step : rank.steps) steps.push_back(&step);
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) / 2);
  std::nth_element(steps.begin(), middle, steps.end(),
                   [](const Step* a, const Step* b) { return a->gpu < b->gpu; });
  return **middle;
}

}  // namespace syncline::job
