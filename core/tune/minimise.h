// The least value of a smooth function in a box, by L-BFGS-B (LBFGSpp).
#pragma once

#include <Eigen/Dense>
#include <functional>

namespace syncline::tune {

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
