// Small least squares in logarithms of parameters: Levenberg and Marquardt's method with forward
// differences, for the few parameters of one cost model. Deterministic.
#pragma once

#include <Eigen/Dense>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace syncline::cost {

// Returns the square root's growth of |error| beyond one: distant rows have little weight.
inline double damp_error(double error) {
  const double size = std::sqrt(2 * (std::sqrt(1 + error * error) - 1));
  return error < 0 ? -size : size;
}

// Returns the best parameters found and their sum of squares. `residuals(parameters, out)` writes
// `rows` numbers. No parameter moves by more than a factor e^2 per step.
template <std::size_t N, typename Residuals>
std::pair<std::array<double, N>, double> least_squares(const Residuals& residuals, std::size_t rows,
                                                       const std::array<double, N>& start) {
  constexpr int kRounds = 60;
  constexpr int kTries = 8;
  constexpr double kStep = 1e-6;
  constexpr double kMax = 2;
  using Small = Eigen::Matrix<double, N, N>;
  using Vector = Eigen::Matrix<double, N, 1>;
  std::array<double, N> x = start;
  Eigen::VectorXd here(rows), there(rows);
  Eigen::Matrix<double, Eigen::Dynamic, N> slope(rows, N);
  residuals(x, here.data());
  double squares = here.squaredNorm();
  double damping = 1e-2;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < N; ++i) {
      auto moved = x;
      moved[i] += kStep;
      residuals(moved, there.data());
      slope.col(static_cast<Eigen::Index>(i)) = (there - here) / kStep;
    }
    const Small square = slope.transpose() * slope;
    const Vector gradient = slope.transpose() * here;
    bool better = false;
    double gained = 0;
    for (int attempt = 0; attempt < kTries && !better; ++attempt) {
      Small damped_square = square;
      for (std::size_t i = 0; i < N; ++i) {
        const auto k = static_cast<Eigen::Index>(i);
        damped_square(k, k) += damping * (square(k, k) + 1e-9);
      }
      const Vector step = -damped_square.ldlt().solve(gradient);
      auto moved = x;
      for (std::size_t i = 0; i < N; ++i) {
        moved[i] += std::fmin(std::fmax(step[static_cast<Eigen::Index>(i)], -kMax), kMax);
      }
      residuals(moved, there.data());
      const double sum = there.squaredNorm();
      if (sum < squares) {
        better = true;
        gained = squares - sum;
        x = moved;
        here = there;
        squares = sum;
        damping = std::fmax(damping / 5, 1e-7);
      } else {
        damping *= 5;
      }
    }
    if (!better || gained < 1e-6 * squares) break;
  }
  return {x, squares};
}

}  // namespace syncline::cost
