// Table of predictors by name, filled in by the program; each computes a plan's time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/metrics.h"
#include "studies/questions/arguments.h"

namespace syncline::questions {

struct Predictor {
  std::string_view name;
  std::string_view summary;
  measure::ExecutorFactory make;
};

// Sets the table. Each program calls it once.
void hand_in(std::vector<Predictor> rows);

// Returns the table, in the order of hand_in.
const std::vector<Predictor>& predictors();

// Returns the predictor. Requires a name in the table, which the argument's check ensures.
const Predictor& predictor_named(std::string_view name);

// Returns the argument `executor`, the name of the predictor.
Argument executor_argument(std::string& name, const std::string& about);

}  // namespace syncline::questions
