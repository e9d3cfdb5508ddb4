// Predictors by name, each of which gives a plan's time: rows that are handed in.
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

// The table, in the order in which it was handed in.
const std::vector<Predictor>& predictors();

// Requires one of their names, which the argument's check has let through.
const Predictor& predictor_named(std::string_view name);

// `executor`: which one predicts.
Argument executor_argument(std::string& name, const std::string& about);

}  // namespace syncline::questions
