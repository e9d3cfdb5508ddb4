// The answer of `syncline plan`: the operations of a strategy, as every rank walks them.
#pragma once

#include <string>
#include <vector>

#include "core/plan/planner.h"
#include "core/scenario/scenario.h"
#include "reports/answer.h"

namespace syncline::reports {

// A strategy's plans in the order of a training; `scenario` must outlive them.
struct Planned {
  struct Phase {
    plan::Plan plan;
    std::int64_t steps = 1;  // of the run that are like this
  };
  const Scenario* scenario = nullptr;
  Strategy strategy;
  std::vector<Phase> phases;
};

// Where gradients wait for ticks, the moments of a cycle differ in the waits alone: the first is
// shown.
Planned planned(const Scenario& scenario, const Strategy& strategy);

// CSV: one line an operation.
Answer answer_of(const Planned& planned);

}  // namespace syncline::reports
