// Bayesian optimisation of the step time over a finite list of candidates, for machines where each
// evaluation costs training steps and is noisy.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/strategy.h"
#include "studies/machines/gaussian_process.h"

namespace syncline::tune {

// What the search chooses from: a strategy and its place on the search's axes.
struct Candidate {
  std::string name;
  Strategy strategy;
  std::vector<double> at;  // by axis; a label's number where that is categorical
};

struct SearchProblem {
  std::vector<bool> categorical;  // by axis
  std::vector<Candidate> candidates;
  Ensemble ensemble;  // what the model expects: logarithms of step times in seconds
};

struct SearchSettings {
  int budget = 12;   // evaluations at most, at least 1
  int steps = 50;    // training steps an evaluation
  int at_least = 3;  // evaluations before the stopping rule is asked
  // The search stops once the expected improvement is below this share of the standard error of one
  // evaluation: what is left to gain could not be seen. 0: the whole budget is used.
  double stop_at_noise_share = 0.25;
  // How far the models may be off where none of them is right, relative to the step time.
  double model_deviation = 0.02;
};

struct Observation {
  std::size_t candidate = 0;
  Seconds step_time = 0;       // mean over the evaluation's steps
  Seconds standard_error = 0;  // of that mean
};

// What the observations say of one candidate.
struct Estimate {
  Seconds step_time = 0;
  double relative_deviation = 0;  // of the step time
};

struct SearchState {
  std::size_t best = 0;             // measured, of the best posterior mean
  std::optional<std::size_t> next;  // empty: the search is over
  std::string stopped;              // why, where it is over
  double expected_improvement = 0;  // of the most promising candidate, relative
  double noise = 0;                 // relative standard error of one evaluation, as fitted
  std::vector<Estimate> estimates;  // by candidate
  Eigen::VectorXd member_weights;   // posterior, by model
};

// Where the search stands after these observations (in the order in which they were made). Without
// observations `best` and `next` are the model's own choice. Requires at least one candidate.
SearchState search_state(const SearchProblem& problem, const SearchSettings& settings,
                         const std::vector<Observation>& observations);

// E[max(incumbent - x, 0)] for x normal.
double expected_improvement(double mean, double deviation, double incumbent);

}  // namespace syncline::tune
