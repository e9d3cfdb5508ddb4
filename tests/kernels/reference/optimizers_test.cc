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

TEST(Sgd, WeightDecayPullsTowardsZero) {
  std::vector<float> weights = {8};
  SgdMemory memory;
  sgd_step({.learning_rate = 0.5, .weight_decay = 0.25}, std::vector<float>{0}, weights, memory);
  EXPECT_EQ(weights[0], 7);
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

TEST(Sgd, DampeningStartsWithTheSecondStep) {
  std::vector<float> weights = {0};
  SgdMemory memory;
  const std::vector<float> one = {1};
  const SgdOptions settings{.learning_rate = 1, .momentum = 0.5, .dampening = 0.5};
  sgd_step(settings, one, weights, memory);
  EXPECT_EQ(memory.velocity[0], 1);
  sgd_step(settings, one, weights, memory);
  EXPECT_EQ(memory.velocity[0], 1);  // 1/2 + 1/2
}

// The gradient plus half of the velocity 1, then plus half of 3/2.
TEST(Sgd, NesterovLooksAhead) {
  std::vector<float> weights = {0};
  SgdMemory memory;
  const std::vector<float> one = {1};
  const SgdOptions settings{.learning_rate = 1, .momentum = 0.5, .nesterov = true};
  sgd_step(settings, one, weights, memory);
  EXPECT_EQ(weights[0], -1.5);
  sgd_step(settings, one, weights, memory);
  EXPECT_EQ(weights[0], -3.25);
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
  for (const bool decoupled : {false, true}) {
    const AdamOptions settings{.learning_rate = 1e-2, .weight_decay = 0.1, .decoupled = decoupled};
    std::vector<float> weights = {0.7f};
    AdamMemory memory;
    double weight = weights[0];
    double mean = 0;
    double variance = 0;
    for (int step = 1; step <= 200; ++step) {
      const float gradient = std::sin(static_cast<float>(step));
      adam_step(settings, std::vector<float>{gradient}, weights, memory);
      double g = gradient;
      if (decoupled) {
        weight -= 1e-2 * 0.1 * weight;
      } else {
        g += 0.1 * weight;
      }
      mean = 0.9 * mean + 0.1 * g;
      variance = 0.999 * variance + 0.001 * g * g;
      weight -= 1e-2 * (mean / (1 - std::pow(0.9, step))) /
                (std::sqrt(variance / (1 - std::pow(0.999, step))) + 1e-8);
      EXPECT_NEAR(weights[0], weight, 1e-6 * step) << step;
    }
  }
}

}  // namespace
}  // namespace syncline::kernels
