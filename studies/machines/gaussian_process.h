// A Gaussian process over a finite list of points, with a prior mean that is itself uncertain: one
// of several models (for instance a cost model under several latencies and bandwidths). The process
// learns at once which models are right and where all of them are wrong.
#pragma once

#include <functional>
#include <vector>

#include <Eigen/Dense>

namespace syncline::tune {

// Points, and what was seen at some of them. On a categorical axis only equal or unequal counts.
struct SeenPoints {
  Eigen::MatrixXd at;  // points x axes
  std::vector<bool> categorical;
  std::vector<int> points;  // by observation; repeats allowed
  Eigen::VectorXd values;
};

struct Ensemble {
  Eigen::VectorXd log_weights;  // need not be normalised
  Eigen::MatrixXd means;        // models x points
};

// k(x, y) = deviation^2 (1 + q + q^2 / 3) exp(-q), q^2 = 5 sum over axes of (distance / length)^2;
// `noise` is the standard deviation of one observation.
struct Kernel {
  double deviation = 1;
  std::vector<double> lengths;  // by axis
  double noise = 1;
};

struct Posterior {
  Eigen::VectorXd member_weights;  // sums to one
  Eigen::MatrixXd means;           // models x points, without noise
  Eigen::VectorXd deviations;      // by point, the same for all models

  Eigen::VectorXd mean() const { return means.transpose() * member_weights; }
};

// log p(values | kernel), the models summed over. If `gradient` is given it receives the derivative
// by the logarithms of deviation, lengths and noise, in this order.
double log_evidence(const SeenPoints& observed, const Ensemble& ensemble, const Kernel& kernel,
                    Eigen::VectorXd* gradient = nullptr);

// The kernel that maximises evidence times a log-normal prior around the typical one, within three
// of its spreads. Requires at least one observation.
Kernel fit_kernel(const SeenPoints& observed, const Ensemble& ensemble, const Kernel& typical);

// What is known at every point. Without observations: the prior.
Posterior condition(const SeenPoints& observed, const Ensemble& ensemble, const Kernel& kernel);

// The least value of a smooth function in a box, by L-BFGS-B (LBFGSpp).
// Returns the value at a point and writes the gradient there.
using ObjectiveWithGradient =
    std::function<double(const Eigen::VectorXd& at, Eigen::VectorXd& gradient)>;

struct Minimum {
  Eigen::VectorXd at;
  double value = 0;
};

// The least value met on the way from `start`, a local minimum. Where rounding hides the slope and
// the line search gives up, the descent ends there; the answer is then as good as rounding allows.
Minimum minimise_in_box(const ObjectiveWithGradient& function, const Eigen::VectorXd& start,
                        const Eigen::VectorXd& low, const Eigen::VectorXd& high,
                        int most_iterations);

}  // namespace syncline::tune
