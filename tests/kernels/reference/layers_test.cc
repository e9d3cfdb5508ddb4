// Gradients of the layers' twins against differences of their outputs, and what must hold exactly.

#include "kernels/reference/layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

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

// Against differences of the loss.
template <typename Loss>
void expect_slopes(std::vector<double>& parameters, const std::vector<double>& slopes,
                   const Loss& loss, double tolerance, const char* name) {
  SCOPED_TRACE(name);
  const double step = 1e-6;
  ASSERT_EQ(slopes.size(), parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double kept = parameters[i];
    parameters[i] = kept + step;
    const double above = loss();
    parameters[i] = kept - step;
    const double below = loss();
    parameters[i] = kept;
    EXPECT_NEAR(slopes[i], (above - below) / (2 * step), tolerance) << i;
  }
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
      expect_slopes(plane.x, gradients.dx, loss, 1e-6, "x");
      expect_slopes(plane.residual, gradients.dresidual, loss, 1e-6, "residual");
      expect_slopes(plane.gamma, gradients.dgamma, loss, 1e-6, "gamma");
      expect_slopes(plane.beta, gradients.dbeta, loss, 1e-6, "beta");
    }
  }
}

TEST(ActivationTwin, ValuesThatAreKnown) {
  EXPECT_EQ(activate(Nonlinearity::kRelu, -2), 0);
  EXPECT_EQ(activate(Nonlinearity::kRelu, 3), 3);
  EXPECT_EQ(activation_slope(Nonlinearity::kRelu, 0), 0);
  EXPECT_NEAR(activate(Nonlinearity::kGelu, 1), 0.8413447460685429, 1e-15);
  EXPECT_EQ(activate(Nonlinearity::kGelu, 0), 0);
  EXPECT_EQ(activation_slope(Nonlinearity::kGelu, 0), 0.5);
}

// ---- The linear layer ---------------------------------------------------------------------------

constexpr Nonlinearity kAll[] = {Nonlinearity::kNone, Nonlinearity::kRelu, Nonlinearity::kGelu,
                                 Nonlinearity::kGeluTanh};

std::vector<double> random_values(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(size);
  for (auto& value : values) value = normal(random);
  return values;
}

LinearLayer random_layer(std::size_t rows, std::size_t inputs, std::size_t outputs, unsigned seed) {
  return {rows,
          inputs,
          outputs,
          random_values(rows * inputs, seed),
          random_values(outputs * inputs, seed + 1),
          random_values(outputs, seed + 2)};
}

// Two layers, the activation between them: x -> z -> f(z) -> y, and the loss sum(weights * y).
struct Network {
  LinearLayer first = random_layer(5, 4, 7, 1);
  LinearLayer second = random_layer(5, 7, 3, 4);
  Nonlinearity activation = Nonlinearity::kNone;
  std::vector<double> weights = random_values(15, 9);

  double loss_after(const std::vector<double>& z) {
    for (std::size_t i = 0; i < z.size(); ++i) second.x[i] = activate(activation, z[i]);
    const auto y = linear_output(second, Nonlinearity::kNone).y;
    double loss = 0;
    for (std::size_t i = 0; i < y.size(); ++i) loss += weights[i] * y[i];
    return loss;
  }
  double loss() { return loss_after(linear_output(first, activation).z); }
};

TEST(LinearLayer, GradientsAreTheSlopesOfTheForwardPass) {
  for (const auto activation : kAll) {
    SCOPED_TRACE(static_cast<int>(activation));
    Network network;
    network.activation = activation;
    auto z = linear_output(network.first, activation).z;
    network.loss();  // the second layer's x
    const auto before = linear_gradient_before(network.second, network.weights, activation, z);
    const auto second = linear_gradient_of_weights(network.second, network.weights);
    const auto first = linear_gradient_of_weights(network.first, before.values);
    const auto loss = [&] { return network.loss(); };
    expect_slopes(
        z, before.values, [&] { return network.loss_after(z); }, 1e-7, "z");
    expect_slopes(network.first.b, before.bias, loss, 1e-7, "first b, from dz");
    expect_slopes(network.first.b, first.bias, loss, 1e-7, "first b");
    expect_slopes(network.first.w, first.values, loss, 1e-7, "first w");
    expect_slopes(network.second.w, second.values, loss, 1e-7, "second w");
    expect_slopes(network.second.b, second.bias, loss, 1e-7, "second b");
  }
}

// The two forms of gelu are near each other, as kernels/gemm_epilogue.h says, and not the same.
TEST(LinearLayer, GeluByTanhIsNearGelu) {
  double worst = 0;
  for (double z = -12; z <= 12; z += 1.0 / 256) {
    worst = std::max(
        worst, std::fabs(activate(Nonlinearity::kGelu, z) - activate(Nonlinearity::kGeluTanh, z)));
  }
  EXPECT_LT(worst, 5e-4);
  EXPECT_GT(worst, 1e-4);
  EXPECT_EQ(activate(Nonlinearity::kGeluTanh, 0), 0);
  EXPECT_EQ(activation_slope(Nonlinearity::kGeluTanh, 0), 0.5);
  // 1/2 (1 + tanh(sqrt(2 / pi) * 1.044715)), by hand.
  EXPECT_NEAR(activate(Nonlinearity::kGeluTanh, 1), 0.8411919906082768, 1e-12);
}

}  // namespace
}  // namespace syncline::kernels
