// The search starts from the model's ranking: the prior mean is the model's prediction under many
// latencies and bandwidths at once (the models). Every measured step time thus recalibrates the
// model, and a Gaussian process learns the rest. The next candidate has the highest expected
// improvement over the best posterior mean measured so far, not over the best noisy figure. The
// search stops when that is small against the noise of one evaluation, or the budget is spent. The
// answer is the measured candidate with the best posterior mean.
//
// The search is deterministic: the next candidate is a function of the problem and the
// observations, so an interrupted search with its observations continues as if uninterrupted.
#include "studies/machines/bayesian_search.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/base/statistics.h"

namespace syncline::tune {
namespace {

// Converts observations. Each axis that is not categorical spans [0, 1] over the candidates. Values
// are logarithms of step times: a factor in latency or noise is an offset.
SeenPoints observed_of(const SearchProblem& problem, const std::vector<Observation>& observations) {
  SeenPoints observed;
  observed.categorical = problem.categorical;
  observed.at.resize(static_cast<Eigen::Index>(problem.candidates.size()),
                     static_cast<Eigen::Index>(problem.categorical.size()));
  for (std::size_t a = 0; a < problem.categorical.size(); ++a) {
    auto column = observed.at.col(static_cast<Eigen::Index>(a));
    for (std::size_t c = 0; c < problem.candidates.size(); ++c) {
      assert(problem.candidates[c].at.size() == problem.categorical.size() &&
             "a candidate has a coordinate on every axis");
      column(static_cast<Eigen::Index>(c)) = problem.candidates[c].at[a];
    }
    if (problem.categorical[a]) continue;
    const double low = column.minCoeff();
    const double span = column.maxCoeff() - low;
    column = (column.array() - low) / (span > 0 ? span : 1);
  }
  observed.values.resize(static_cast<Eigen::Index>(observations.size()));
  for (std::size_t i = 0; i < observations.size(); ++i) {
    observed.points.push_back(static_cast<int>(observations[i].candidate));
    observed.values(static_cast<Eigen::Index>(i)) = std::log(observations[i].step_time);
  }
  return observed;
}

Kernel typical_kernel(const SearchProblem& problem, const SearchSettings& settings,
                      const std::vector<Observation>& observations) {
  constexpr double kTypicalLength = 0.3;  // share of an axis
  constexpr double kMinNoise = 1e-4;      // keeps the covariance well conditioned
  Kernel typical;
  typical.deviation = settings.model_deviation;
  typical.lengths.assign(problem.categorical.size(), kTypicalLength);
  double squares = 0;
  for (const auto& seen : observations) {
    const double relative = seen.standard_error / seen.step_time;
    squares += relative * relative / static_cast<double>(observations.size());
  }
  typical.noise = std::max(kMinNoise, std::sqrt(squares));
  return typical;
}

// Models with less weight do not affect the answer and are skipped.
constexpr double kNoWeight = 1e-6;

Eigen::VectorXd improvements(const Posterior& posterior, double incumbent) {
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(posterior.means.cols());
  for (Eigen::Index g = 0; g < posterior.means.rows(); ++g) {
    const double weight = posterior.member_weights(g);
    if (weight < kNoWeight) continue;
    for (Eigen::Index c = 0; c < sum.size(); ++c) {
      sum(c) +=
          weight * expected_improvement(posterior.means(g, c), posterior.deviations(c), incumbent);
    }
  }
  return sum;
}

// Estimates by the mixture of models: their disagreement adds to the process's variance.
std::vector<Estimate> estimates_of(const Posterior& posterior, const Eigen::VectorXd& mean) {
  std::vector<Estimate> estimates;
  for (Eigen::Index c = 0; c < mean.size(); ++c) {
    const Eigen::ArrayXd apart = posterior.means.col(c).array() - mean(c);
    const double between = (posterior.member_weights.array() * apart.square()).sum();
    const double within = posterior.deviations(c) * posterior.deviations(c);
    estimates.push_back({std::exp(mean(c)), std::sqrt(between + within)});
  }
  return estimates;
}

std::size_t lowest(const Eigen::VectorXd& values) {
  Eigen::Index at = 0;
  values.minCoeff(&at);
  return static_cast<std::size_t>(at);
}

}  // namespace

double expected_improvement(double mean, double deviation, double incumbent) {
  const double gain = incumbent - mean;
  if (deviation <= 0) return std::max(gain, 0.0);
  const double z = gain / deviation;
  return gain * normal_distribution(z) + deviation * normal_density(z);
}

SearchState search_state(const SearchProblem& problem, const SearchSettings& settings,
                         const std::vector<Observation>& observations) {
  assert(!problem.candidates.empty() && "a search has something to choose from");
  assert(settings.budget >= 1 && "a search may look at least once");
  const SeenPoints observed = observed_of(problem, observations);
  const Kernel typical = typical_kernel(problem, settings, observations);
  SearchState state;

  // Without measurements: the model's ranking by expected step time under all models.
  if (observations.empty()) {
    const Posterior posterior = condition(observed, problem.ensemble, typical);
    state.estimates = estimates_of(posterior, posterior.mean());
    state.best =
        lowest(posterior.means.array().exp().matrix().transpose() * posterior.member_weights);
    state.next = state.best;
    state.member_weights = posterior.member_weights;
    return state;
  }

  const Kernel kernel = fit_kernel(observed, problem.ensemble, typical);
  const Posterior posterior = condition(observed, problem.ensemble, kernel);
  const Eigen::VectorXd mean = posterior.mean();
  state.estimates = estimates_of(posterior, mean);
  state.member_weights = posterior.member_weights;
  state.noise = kernel.noise;
  state.best = observations.front().candidate;
  for (const auto& seen : observations) {
    if (mean(static_cast<Eigen::Index>(seen.candidate)) <
        mean(static_cast<Eigen::Index>(state.best))) {
      state.best = seen.candidate;
    }
  }

  const double incumbent = mean(static_cast<Eigen::Index>(state.best));
  const Eigen::VectorXd gains = improvements(posterior, incumbent);
  Eigen::Index promising = 0;
  state.expected_improvement = gains.maxCoeff(&promising);
  const auto done = static_cast<int>(observations.size());
  if (done >= settings.budget) {
    state.stopped = "the budget is spent";
  } else if (done >= settings.at_least &&
             state.expected_improvement < settings.stop_at_noise_share * kernel.noise) {
    state.stopped = "what is left to gain is below the noise";
  } else {
    state.next = static_cast<std::size_t>(promising);
  }
  return state;
}

}  // namespace syncline::tune
