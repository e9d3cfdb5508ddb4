// `explain`: the parts of each strategy's step.
#pragma once

#include <string>
#include <vector>

#include "studies/explain/explanation.h"
#include "studies/questions/arguments.h"

namespace syncline::questions {

struct Explain {
  std::vector<std::string> strategies;  // empty: all
};

Arguments arguments_of(Explain& question);

// Explains strategies of a scenario without its sweep.
measure::Explanation answer(const Explain& question, const input::Document& given);

}  // namespace syncline::questions
