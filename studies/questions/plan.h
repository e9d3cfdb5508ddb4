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
    std::int64_t steps = 1;  // of the run that are like this
  };
  Scenario scenario;
  Strategy strategy;
  std::vector<Phase> phases;
  std::vector<std::string> warnings;
};

// Of a scenario without its sweep. Where gradients wait for ticks, the moments of a cycle differ in
// the waits alone: the first is there.
Planned answer(const PlanQuestion& question, const input::Document& given);

}  // namespace syncline::questions
