// The optimizers against their formulas, by hand and in double.

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/reference/optimizers.h"

namespace syncline::kernels {
namespace {

TEST(Sgd, PlainStepsAreTheGradientTimesTheRate) {
  std::vector<float> weights = {1, -2, 4};
  SgdMemory memory;
  sgd_step({.learning_rate = 0.5}, std::vector<float>{2, 4, 0}, weights, memory);
  EXPECT_EQ(weights, (std::vector<float>{0, -4, 4}));
  EXPECT_TRUE(memory.velocity.empty());
}

// Constant gradient 1, momentum 1/2: velocities 1, 3/2, 7/4.
TEST(Sgd, MomentumAddsUp) {
  std::vector<float> weights = {0};
  SgdMemory memory;
  const std::vector<float> one = {1};
  const SgdOptions settings{.learning_rate = 1, .momentum = 0.5};
  sgd_step(settings, one, weights, memory);
  EXPECT_EQ(weights[0], -1);
  sgd_step(settings, one, weights, memory);
  EXPECT_EQ(weights[0], -2.5);
  sgd_step(settings, one, weights, memory);
  EXPECT_EQ(weights[0], -4.25);
}

// The corrections make the first step as long as the rate, whatever the gradient's size.
TEST(Adam, TheFirstStepIsTheRate) {
  std::vector<float> weights = {0, 0, 0};
  AdamMemory memory;
  adam_step({.learning_rate = 0.125}, std::vector<float>{1e-3f, -40, 7}, weights, memory);
  EXPECT_NEAR(weights[0], -0.125, 2e-6);
  EXPECT_NEAR(weights[1], 0.125, 1e-7);
  EXPECT_NEAR(weights[2], -0.125, 1e-7);
}

TEST(Adam, FollowsItsFormulas) {
  std::vector<float> weights = {0.7f};
  AdamMemory memory;
  double weight = weights[0];
  double mean = 0;
  double variance = 0;
  for (int step = 1; step <= 200; ++step) {
    const float gradient = std::sin(static_cast<float>(step));
    adam_step({.learning_rate = 1e-2}, std::vector<float>{gradient}, weights, memory);
    mean = 0.9 * mean + 0.1 * gradient;
    variance = 0.999 * variance + 0.001 * gradient * gradient;
    weight -= 1e-2 * (mean / (1 - std::pow(0.9, step))) /
              (std::sqrt(variance / (1 - std::pow(0.999, step))) + 1e-8);
    EXPECT_NEAR(weights[0], weight, 1e-6 * step) << step;
  }
}

}  // namespace
}  // namespace syncline::kernels
