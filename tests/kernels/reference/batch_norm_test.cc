// Batch normalisation's gradients against differences of its output, and what must hold exactly.

#include "kernels/reference/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace syncline::kernels {
namespace {

NormedPlane random_plane(std::size_t rows, std::size_t channels, bool residual,
                         Nonlinearity activation) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  const auto fill = [&](std::size_t size) {
    std::vector<double> values(size);
    for (auto& value : values) value = normal(random);
    return values;
  };
  NormedPlane plane;
  plane.channels = channels;
  plane.x = fill(rows * channels);
  if (residual) plane.residual = fill(rows * channels);
  plane.gamma = fill(channels);
  plane.beta = fill(channels);
  plane.activation = activation;
  return plane;
}

TEST(BatchNormTwin, OutputHasTheMeanAndDeviationAskedFor) {
  const auto plane = random_plane(50, 3, false, Nonlinearity::kNone);
  const auto output = batch_norm(plane);
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = c; i < output.y.size(); i += 3) {
      sum += output.y[i];
      squares += (output.y[i] - plane.beta[c]) * (output.y[i] - plane.beta[c]);
    }
    EXPECT_NEAR(sum / 50, plane.beta[c], 1e-12);
    EXPECT_NEAR(squares / 50, plane.gamma[c] * plane.gamma[c], 1e-4);
  }
}

TEST(BatchNormTwin, GradientsAreSlopes) {
  for (const bool residual : {false, true}) {
    for (const auto activation : {Nonlinearity::kNone, Nonlinearity::kRelu, Nonlinearity::kGelu}) {
      auto plane = random_plane(7, 2, residual, activation);
      std::vector<double> dy;
      for (std::size_t i = 0; i < plane.x.size(); ++i) {
        dy.push_back(std::sin(static_cast<double>(i) + 0.5));
      }
      const auto loss = [&] {
        const auto y = batch_norm(plane).y;
        double sum = 0;
        for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
        return sum;
      };
      const auto gradients = batch_norm_gradients(plane, dy);
      const auto check = [&](std::vector<double>& values, const std::vector<double>& slopes) {
        ASSERT_EQ(values.size(), slopes.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
          const double old = values[i];
          values[i] = old + 1e-6;
          const double above = loss();
          values[i] = old - 1e-6;
          const double below = loss();
          values[i] = old;
          EXPECT_NEAR(slopes[i], (above - below) / 2e-6, 1e-6);
        }
      };
      check(plane.x, gradients.dx);
      check(plane.residual, gradients.dresidual);
      check(plane.gamma, gradients.dgamma);
      check(plane.beta, gradients.dbeta);
    }
  }
}

TEST(ActivationTwin, ValuesThatAreKnown) {
  EXPECT_EQ(activated(Nonlinearity::kRelu, -2), 0);
  EXPECT_EQ(activated(Nonlinearity::kRelu, 3), 3);
  EXPECT_EQ(activation_slope(Nonlinearity::kRelu, 0), 0);
  EXPECT_NEAR(activated(Nonlinearity::kGelu, 1), 0.8413447460685429, 1e-15);
  EXPECT_EQ(activated(Nonlinearity::kGelu, 0), 0);
  EXPECT_EQ(activation_slope(Nonlinearity::kGelu, 0), 0.5);
}

}  // namespace
}  // namespace syncline::kernels
