// `plan`: the operations of a strategy, in the order of a training.
#pragma once

#include <string>
#include <vector>

#include "core/plan.h"
#include "formats/input/document.h"
#include "formats/scenario/scenario.h"
#include "studies/questions/arguments.h"

namespace syncline::questions {

struct PlanQuestion {
  std::string strategy;  // empty: the first
};

Arguments arguments_of(PlanQuestion& question);

struct Planned {
  struct Phase {
    plan::Plan plan;
    std::int64_t steps = 1;  // steps of the run with this plan
  };
  Scenario scenario;
  Strategy strategy;
  std::vector<Phase> phases;
  std::vector<std::string> warnings;
};

// Plans a strategy of a scenario without its sweep. If gradients wait for ticks, the plan is that
// of the first moment of a cycle; other moments differ only in waits.
Planned answer(const PlanQuestion& question, const input::Document& given);

}  // namespace syncline::questions
