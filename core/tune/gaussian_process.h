// A Gaussian process over a finite list of points, with a prior mean that is itself uncertain: one
// of several models (for instance a cost model under several latencies and bandwidths). The process
// learns at once which models are right and where all of them are wrong.
#pragma once

#include <functional>
#include <vector>

#include <Eigen/Dense>

namespace syncline::tune {

// Rows are points, columns axes. On a categorical axis only equal or unequal counts.
struct Points {
  Eigen::MatrixXd at;
  std::vector<bool> categorical;
};

struct Ensemble {
  Eigen::VectorXd log_weights;  // need not be normalised
  Eigen::MatrixXd means;        // models x points
};

struct Sample {
  std::vector<int> points;  // repeats allowed
  Eigen::VectorXd values;
};

// k(x, y) = deviation^2 (1 + q + q^2 / 3) exp(-q), q^2 = 5 sum over axes of (distance / length)^2;
// `noise` is the standard deviation of one observation.
struct Kernel {
  double deviation = 1;
  std::vector<double> lengths;  // by axis
  double noise = 1;
};

// Log-normal around `typical`; the spreads are standard deviations of the logarithms.
struct KernelPrior {
  Kernel typical;
  double deviation_spread = 0.7;
  double length_spread = 0.7;
  double noise_spread = 0.3;
};

struct Posterior {
  Eigen::VectorXd member_weights;  // sums to one
  Eigen::MatrixXd means;           // models x points, without noise
  Eigen::VectorXd deviations;      // by point, the same for all models

  Eigen::VectorXd mean() const { return means.transpose() * member_weights; }
};

// log p(values | kernel), the models summed over. If `gradient` is given it receives the derivative
// by the logarithms of deviation, lengths and noise, in this order.
double log_evidence(const Points& points, const Ensemble& ensemble, const Sample& observed,
                    const Kernel& kernel, Eigen::VectorXd* gradient = nullptr);

// The kernel that maximises evidence times prior, within three spreads of the typical one. Requires
// at least one observation.
Kernel fit_kernel(const Points& points, const Ensemble& ensemble, const Sample& observed,
                  const KernelPrior& prior);

// What is known at every point. Without observations: the prior.
Posterior condition(const Points& points, const Ensemble& ensemble, const Sample& observed,
                    const Kernel& kernel);

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
