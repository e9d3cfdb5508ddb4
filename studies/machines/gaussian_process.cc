//   value(x) = member_g(x) + f(x) + noise,   g drawn by weight, f ~ GP(0, Matern 5/2)
//
// Given g this is the textbook process (Rasmussen and Williams, Gaussian Processes for Machine
// Learning, 2006, algorithm 2.1), so the posterior is a mixture of normals with one variance for
// all models and a mean for each; the weights follow by Bayes' rule. With one model it is plain
// regression with a prior mean. Hyper-parameters maximise the evidence times their prior
// (L-BFGS-B).
//
// Units are the caller's: coordinates on every axis within [0, 1], values of any unit.
#include "studies/machines/gaussian_process.h"

#include <LBFGSB.h>

#include <cassert>
#include <cmath>
#include <stdexcept>

#include "core/base/index.h"

namespace syncline::tune {
namespace {

// Returns the squared distance of two points along an axis, before division by its length.
double squared_distance(const SeenPoints& observed, int a, int b, Eigen::Index axis) {
  const double gap = observed.at(a, axis) - observed.at(b, axis);
  if (observed.categorical[index(axis)]) return gap == 0 ? 0 : 1;
  return gap * gap;
}

double root_five_distance(const SeenPoints& observed, const Kernel& kernel, int a, int b) {
  double sum = 0;
  for (Eigen::Index axis = 0; axis < observed.at.cols(); ++axis) {
    const double length = kernel.lengths[index(axis)];
    sum += squared_distance(observed, a, b, axis) / (length * length);
  }
  return std::sqrt(5 * sum);
}

double covariance(const SeenPoints& observed, const Kernel& kernel, int a, int b) {
  const double q = root_five_distance(observed, kernel, a, b);
  return kernel.deviation * kernel.deviation * (1 + q + q * q / 3) * std::exp(-q);
}

// Returns the covariance of the observations, including noise.
Eigen::MatrixXd observed_covariance(const SeenPoints& observed, const Kernel& kernel) {
  const auto n = static_cast<Eigen::Index>(observed.points.size());
  Eigen::MatrixXd matrix(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) {
      const double value =
          covariance(observed, kernel, observed.points[index(i)], observed.points[index(j)]);
      matrix(i, j) = matrix(j, i) = value;
    }
    matrix(i, i) += kernel.noise * kernel.noise;
  }
  return matrix;
}

// Returns the residuals of the models: observations x models.
Eigen::MatrixXd residuals(const Ensemble& ensemble, const SeenPoints& observed) {
  const auto n = static_cast<Eigen::Index>(observed.points.size());
  Eigen::MatrixXd matrix(n, ensemble.means.rows());
  for (Eigen::Index i = 0; i < n; ++i) {
    matrix.row(i) = observed.values(i) - ensemble.means.col(observed.points[index(i)]).array();
  }
  return matrix;
}

double log_sum_exp(const Eigen::VectorXd& values) {
  const double highest = values.maxCoeff();
  return highest + std::log((values.array() - highest).exp().sum());
}

// Returns log (weight x likelihood) of each model, up to a constant of all models.
Eigen::VectorXd log_shares(const Ensemble& ensemble, const Eigen::MatrixXd& whitened) {
  return ensemble.log_weights - 0.5 * whitened.colwise().squaredNorm().transpose();
}

Eigen::VectorXd normalised(const Eigen::VectorXd& log_weights) {
  return (log_weights.array() - log_sum_exp(log_weights)).exp();
}

Eigen::VectorXd log_of(const Kernel& kernel) {
  const auto axes = static_cast<Eigen::Index>(kernel.lengths.size());
  Eigen::VectorXd logs(axes + 2);
  logs(0) = std::log(kernel.deviation);
  for (Eigen::Index axis = 0; axis < axes; ++axis) {
    logs(axis + 1) = std::log(kernel.lengths[index(axis)]);
  }
  logs(axes + 1) = std::log(kernel.noise);
  return logs;
}

Kernel kernel_of(const Eigen::VectorXd& logs) {
  Kernel kernel;
  kernel.deviation = std::exp(logs(0));
  for (Eigen::Index at = 1; at + 1 < logs.size(); ++at) {
    kernel.lengths.push_back(std::exp(logs(at)));
  }
  kernel.noise = std::exp(logs(logs.size() - 1));
  return kernel;
}

}  // namespace

// Computes, with residuals r_g and covariance K, log p = log sum_g w_g exp(-r_g' K^-1 r_g / 2) -
// log|K| / 2. Its derivative is tr((A - K^-1) dK) / 2; A is the mean of (K^-1 r_g)(K^-1 r_g)' over
// the models' posterior weights.
double log_evidence(const SeenPoints& observed, const Ensemble& ensemble, const Kernel& kernel,
                    Eigen::VectorXd* gradient) {
  const auto n = static_cast<Eigen::Index>(observed.points.size());
  const Eigen::LLT<Eigen::MatrixXd> root(observed_covariance(observed, kernel));
  const Eigen::MatrixXd whitened = root.matrixL().solve(residuals(ensemble, observed));
  const Eigen::VectorXd shares = log_shares(ensemble, whitened);
  const double half_log_determinant = root.matrixLLT().diagonal().array().log().sum();
  const double evidence = log_sum_exp(shares) - log_sum_exp(ensemble.log_weights) -
                          half_log_determinant - 0.5 * static_cast<double>(n) * std::log(2 * M_PI);
  if (gradient == nullptr) return evidence;

  const Eigen::MatrixXd solved = root.matrixU().solve(whitened);  // K^-1 r_g, per column
  const Eigen::VectorXd weights = normalised(shares);
  const Eigen::MatrixXd slope = solved * weights.asDiagonal() * solved.transpose() -
                                root.solve(Eigen::MatrixXd::Identity(n, n));
  const auto axes = observed.at.cols();
  *gradient = Eigen::VectorXd::Zero(axes + 2);
  const double variance = kernel.deviation * kernel.deviation;
  for (Eigen::Index i = 0; i < n; ++i) {
    const int a = observed.points[index(i)];
    for (Eigen::Index j = 0; j < n; ++j) {
      const int b = observed.points[index(j)];
      const double q = root_five_distance(observed, kernel, a, b);
      const double decay = variance * std::exp(-q);
      (*gradient)(0) += slope(i, j) * decay * (1 + q + q * q / 3);
      for (Eigen::Index axis = 0; axis < axes; ++axis) {
        const double length = kernel.lengths[index(axis)];
        (*gradient)(axis + 1) += slope(i, j) * decay * 5.0 / 6 * (1 + q) *
                                 squared_distance(observed, a, b, axis) / (length * length);
      }
    }
    (*gradient)(axes + 1) += slope(i, i) * kernel.noise * kernel.noise;
  }
  return evidence;
}

// Fits with a narrow prior of the noise, known from each evaluation; those of the others are wide.
Kernel fit_kernel(const SeenPoints& observed, const Ensemble& ensemble, const Kernel& typical) {
  assert(!observed.points.empty() && "a kernel is fitted to something");
  constexpr double kSpread = 0.7, kNoiseSpread = 0.3;  // standard deviations of logarithms
  const Eigen::VectorXd middle = log_of(typical);
  Eigen::VectorXd spreads = Eigen::VectorXd::Constant(middle.size(), kSpread);
  spreads(spreads.size() - 1) = kNoiseSpread;
  const auto loss = [&](const Eigen::VectorXd& logs, Eigen::VectorXd& gradient) {
    const Eigen::VectorXd off = (logs - middle).cwiseQuotient(spreads);
    Eigen::VectorXd slope;
    const double evidence = log_evidence(observed, ensemble, kernel_of(logs), &slope);
    gradient = off.cwiseQuotient(spreads) - slope;
    return 0.5 * off.squaredNorm() - evidence;
  };
  constexpr int kIterations = 50;
  return kernel_of(
      minimise_in_box(loss, middle, middle - 3 * spreads, middle + 3 * spreads, kIterations).at);
}

Posterior condition(const SeenPoints& observed, const Ensemble& ensemble, const Kernel& kernel) {
  const Eigen::Index count = observed.at.rows();
  Posterior posterior;
  posterior.means = ensemble.means;
  if (observed.points.empty()) {
    posterior.member_weights = normalised(ensemble.log_weights);
    posterior.deviations = Eigen::VectorXd::Constant(count, kernel.deviation);
    return posterior;
  }
  const auto n = static_cast<Eigen::Index>(observed.points.size());
  const Eigen::LLT<Eigen::MatrixXd> root(observed_covariance(observed, kernel));
  const Eigen::MatrixXd whitened = root.matrixL().solve(residuals(ensemble, observed));
  posterior.member_weights = normalised(log_shares(ensemble, whitened));
  Eigen::MatrixXd across(n, count);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index at = 0; at < count; ++at) {
      across(i, at) = covariance(observed, kernel, observed.points[index(i)], static_cast<int>(at));
    }
  }
  const Eigen::MatrixXd gain = root.matrixL().solve(across);
  posterior.means += whitened.transpose() * gain;
  const double variance = kernel.deviation * kernel.deviation;
  posterior.deviations =
      (variance - gain.colwise().squaredNorm().array()).max(0).sqrt().transpose();
  return posterior;
}

Minimum minimise_in_box(const ObjectiveWithGradient& function, const Eigen::VectorXd& start,
                        const Eigen::VectorXd& low, const Eigen::VectorXd& high,
                        int most_iterations) {
  assert(start.size() > 0 && "there is something to vary");
  Minimum best{start, INFINITY};
  auto watched = [&](const Eigen::VectorXd& at, Eigen::VectorXd& gradient) {
    const double value = function(at, gradient);
    if (value < best.value) best = {at, value};
    return value;
  };
  LBFGSpp::LBFGSBParam<double> settings;
  settings.epsilon = settings.epsilon_rel = 1e-5;
  settings.past = 1;
  settings.delta = 1e-8;
  settings.max_iterations = most_iterations;
  LBFGSpp::LBFGSBSolver<double> solver(settings);
  Eigen::VectorXd at = start;
  double reached = 0;
  try {
    solver.minimize(watched, at, reached, low, high);
  } catch (const std::runtime_error&) {  // thrown by the line search
  } catch (const std::logic_error&) {    // thrown by its step, if rounding hides the slope
  }
  return best;
}

}  // namespace syncline::tune
