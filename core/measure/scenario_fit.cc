#include "core/measure/scenario_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <unsupported/Eigen/NonLinearOptimization>
#include <unsupported/Eigen/NumericalDiff>

namespace syncline::measure {
namespace {

// value = min + (max - min) * sin^2(angle): bounds are never left, and can be reached.
double value_at(const Calibration::Parameter& parameter, double angle) {
  const double s = std::sin(angle);
  return parameter.min + (parameter.max - parameter.min) * s * s;
}

double angle_of(const Calibration::Parameter& parameter, double value) {
  const double share = (value - parameter.min) / (parameter.max - parameter.min);
  // At a bound the derivative vanishes and a fit could not leave it: start a little inside.
  constexpr double kInside = 1e-4;
  return std::asin(std::sqrt(std::clamp(share, kInside, 1 - kInside)));
}

struct Problem {
  using Scalar = double;
  using InputType = Eigen::VectorXd;
  using ValueType = Eigen::VectorXd;
  using JacobianType = Eigen::MatrixXd;
  // Names that Eigen asks for.
  // NOLINTNEXTLINE(readability-identifier-naming)
  enum { InputsAtCompileTime = Eigen::Dynamic, ValuesAtCompileTime = Eigen::Dynamic };

  const std::vector<Calibration::Parameter>& parameters;
  const Residuals& residuals;
  int rows;

  int inputs() const { return static_cast<int>(parameters.size()); }
  int values() const { return rows; }

  std::vector<double> at(const Eigen::VectorXd& angles) const {
    std::vector<double> values;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      values.push_back(value_at(parameters[i], angles[static_cast<Eigen::Index>(i)]));
    }
    return values;
  }

  int operator()(const Eigen::VectorXd& angles, Eigen::VectorXd& out) const {
    const auto errors = residuals(at(angles));
    for (std::size_t i = 0; i < errors.size(); ++i) {
      out[static_cast<Eigen::Index>(i)] = errors[i];
    }
    return 0;
  }
};

double sum_of_squares(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += error * error;
  return sum;
}

}  // namespace

std::vector<double> fit_parameters(const std::vector<Calibration::Parameter>& parameters,
                                   const Residuals& residuals) {
  std::vector<double> start;
  for (const auto& parameter : parameters) start.push_back(parameter.start);
  const auto first = residuals(start);
  const Problem problem{parameters, residuals, static_cast<int>(first.size())};
  // Step times have kinks (a maximum of computation and communication); a derivative over a tenth
  // of a per mille of the range looks across rounding without smearing them.
  constexpr double kStep = 1e-8;
  Eigen::NumericalDiff<Problem> with_slope(problem, kStep);

  std::vector<double> best = start;
  double best_sum = sum_of_squares(first);
  // A kink can stop the descent early: begin again from where it stopped until nothing is gained.
  for (int round = 0; round < 8; ++round) {
    Eigen::VectorXd angles(problem.inputs());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      angles[static_cast<Eigen::Index>(i)] = angle_of(parameters[i], best[i]);
    }
    Eigen::LevenbergMarquardt<Eigen::NumericalDiff<Problem>> solver(with_slope);
    solver.parameters.maxfev = 2000;
    solver.parameters.xtol = 1e-10;
    solver.parameters.ftol = 1e-12;
    solver.minimize(angles);
    const auto found = problem.at(angles);
    const double sum = sum_of_squares(residuals(found));
    if (sum >= best_sum * (1 - 1e-9)) break;
    best = found;
    best_sum = sum;
  }
  return best;
}

}  // namespace syncline::measure
