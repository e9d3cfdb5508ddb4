#include "core/tune/minimise.h"

#include <LBFGSB.h>

#include <cassert>
#include <cmath>
#include <stdexcept>

namespace syncline::tune {

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
  } catch (const std::runtime_error&) {  // of the line search
  } catch (const std::logic_error&) {    // of its step, where the slope is rounding
  }
  return best;
}

}  // namespace syncline::tune
