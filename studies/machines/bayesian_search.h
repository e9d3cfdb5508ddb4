// Bayesian optimisation of the step time over a finite list of candidates, for machines: each
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

// A candidate of the search: a strategy and its coordinates on the search's axes.
struct Candidate {
  std::string name;
  Strategy strategy;
  std::vector<double> at;  // per axis; the label's number on a categorical one
};

struct SearchProblem {
  std::vector<bool> categorical;  // per axis
  std::vector<Candidate> candidates;
  Ensemble ensemble;  // the model's logarithms of step times in seconds
};

struct SearchSettings {
  int budget = 12;   // most evaluations, at least 1
  int steps = 50;    // training steps per evaluation
  int at_least = 3;  // evaluations before the stopping rule applies
  // The search stops if the expected improvement is below this share of the standard error of one
  // evaluation, as smaller gains cannot be measured. 0: the whole budget is used.
  double stop_at_noise_share = 0.25;
  // Deviation of the step time from all models, relative, if none of them is right.
  double model_deviation = 0.02;
};

struct Observation {
  std::size_t candidate = 0;
  Seconds step_time = 0;       // mean over the evaluation's steps
  Seconds standard_error = 0;  // error of `step_time`
};

// Posterior of one candidate's step time.
struct Estimate {
  Seconds step_time = 0;
  double relative_deviation = 0;  // standard deviation / step time
};

struct SearchState {
  std::size_t best = 0;             // measured candidate with the best posterior mean
  std::optional<std::size_t> next;  // empty: the search is over
  std::string stopped;              // the reason, once the search is over
  double expected_improvement = 0;  // the most promising candidate's, relative
  double noise = 0;                 // relative standard error of one evaluation, as fitted
  std::vector<Estimate> estimates;  // per candidate
  Eigen::VectorXd member_weights;   // posterior, per model
};

// Returns the state of the search after these observations, in order. Without observations `best`
// and `next` are the model's choice. Requires at least one candidate.
SearchState search_state(const SearchProblem& problem, const SearchSettings& settings,
                         const std::vector<Observation>& observations);

// Returns E[max(incumbent - x, 0)] for x normal.
double expected_improvement(double mean, double deviation, double incumbent);

}  // namespace syncline::tune
