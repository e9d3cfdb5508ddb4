// The answer of `syncline check`: that a scenario is right, what it holds, and what is allowed in
// it and rarely meant.
#pragma once

#include <string>
#include <vector>

#include "core/scenario/scenario.h"
#include "reports/answer.h"

namespace syncline::reports {

// A scenario that is correct at each of its sweep points.
struct Checked {
  std::string file;
  Scenario scenario;
  std::size_t points = 1;
  std::vector<std::string> warnings;
};

// CSV: one line a note of a strategy.
Answer answer_of(const Checked& checked);

}  // namespace syncline::reports
