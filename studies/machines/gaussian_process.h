// A Gaussian process over a finite list of points with an uncertain prior mean: one of several
// models (for instance a cost model under several latencies and bandwidths). The process learns at
// once which models are right and at which points all of them are wrong.
#pragma once

#include <functional>
#include <vector>

#include <Eigen/Dense>

namespace syncline::tune {

// Points, and the values observed at some of them. On a categorical axis only equality counts.
struct SeenPoints {
  Eigen::MatrixXd at;  // points x axes
  std::vector<bool> categorical;
  std::vector<int> points;  // per observation; repeats allowed
  Eigen::VectorXd values;
};

struct Ensemble {
  Eigen::VectorXd log_weights;  // need not be normalised
  Eigen::MatrixXd means;        // models x points
};

// A Matern 5/2 kernel: k(x, y) = deviation^2 (1 + q + q^2 / 3) exp(-q), q^2 = 5 sum over axes of
// (distance / length)^2. `noise` is the standard deviation of one observation.
struct Kernel {
  double deviation = 1;
  std::vector<double> lengths;  // per axis
  double noise = 1;
};

struct Posterior {
  Eigen::VectorXd member_weights;  // sums to one
  Eigen::MatrixXd means;           // models x points, without noise
  Eigen::VectorXd deviations;      // per point, the same for all models

  Eigen::VectorXd mean() const { return means.transpose() * member_weights; }
};

// Returns log p(values | kernel), summed over the models. Writes to `gradient`, if given, the
// derivative by the logarithms of deviation, lengths and noise, in this order.
double log_evidence(const SeenPoints& observed, const Ensemble& ensemble, const Kernel& kernel,
                    Eigen::VectorXd* gradient = nullptr);

// Returns the kernel that maximises evidence times a log-normal prior around `typical`, within
// three standard deviations of that prior. Requires at least one observation.
Kernel fit_kernel(const SeenPoints& observed, const Ensemble& ensemble, const Kernel& typical);

// Returns the posterior at every point; without observations, the prior.
Posterior condition(const SeenPoints& observed, const Ensemble& ensemble, const Kernel& kernel);

// A smooth function, to be minimised in a box by L-BFGS-B (LBFGSpp).
// Returns the value at a point and writes the gradient there.
using ObjectiveWithGradient =
    std::function<double(const Eigen::VectorXd& at, Eigen::VectorXd& gradient)>;

struct Minimum {
  Eigen::VectorXd at;
  double value = 0;
};

// Returns the least value met on the way from `start`, a local minimum. If rounding hides the slope
// and the line search fails, the descent ends; the result is then as good as rounding allows.
Minimum minimise_in_box(const ObjectiveWithGradient& function, const Eigen::VectorXd& start,
                        const Eigen::VectorXd& low, const Eigen::VectorXd& high,
                        int most_iterations);

}  // namespace syncline::tune
