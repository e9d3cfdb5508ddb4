// What a search on a real machine chooses from: a finite list of candidates, each a strategy and
// its place on the search's axes, and what the model expects of each under every model.
#pragma once

#include <string>
#include <vector>

#include "core/scenario/strategy.h"
#include "core/tune/gaussian_process.h"

namespace syncline::tune {

// An integer axis is a linear one on which candidates stand at integers; on a categorical axis the
// number is the label's index.
struct SearchAxis {
  enum class Scale { kLinear, kLogarithmic, kCategorical };
  std::string name;
  Scale scale = Scale::kLinear;
};

struct Candidate {
  std::string name;
  Strategy strategy;
  std::vector<double> at;  // by axis; positive where the axis is logarithmic
};

struct SearchProblem {
  std::vector<SearchAxis> axes;
  std::vector<Candidate> candidates;
  Ensemble ensemble;  // logarithms of step times in seconds
};

}  // namespace syncline::tune
