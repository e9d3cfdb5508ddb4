// `validate`: a scenario's strategies, predicted and then run on ranks.
#pragma once

#include <string>
#include <vector>

#include "studies/questions/arguments.h"

namespace syncline::questions {

struct Validate {
  std::string backend = "gloo";         // its module has this name
  std::string compute = "timers";       // or "kernels": the workload's operators
  std::vector<std::string> strategies;  // empty: all
  std::string executor = "model";       // name of the predictor
  bool calibrate = false;               // measures the links first, and predicts with them
  int warmup = 2;                       // periods before measuring
  int repeats = 9;                      // periods measured
  bool no_check = false;                // leaves the all-reduced values unchecked
  std::string values = "integers";      // values of gradients: exact sums, or "real"
};

Arguments arguments_of(Validate& question);

// Returns a key of the question: equal for ranks with the same question, different otherwise.
std::string key_of(const Validate& question);

}  // namespace syncline::questions
