#include "core/compress/momentum_correction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "core/codec.h"

namespace syncline::compress {
namespace {

using Values = std::vector<float>;

TEST(MomentumCorrection, AccumulatesByHand) {
  const Values g{1, -2, 0.5f}, w{10, 0, -4};
  Values u{2, 4, 0}, v{1, 1, 1};
  EXPECT_FALSE(accumulate(g, w, {.momentum = 0.5f, .scale = 2, .weight_decay = 0.25f}, u, v));
  EXPECT_EQ(u, (Values{5.5f, -2, 0}));  // 0.5 u + 2 g + w / 4
  EXPECT_EQ(v, (Values{6.5f, -1, 1}));
  Values nu{2, 4, 0}, nv{1, 1, 1};
  accumulate(g, {}, {.momentum = 0.5f, .nesterov = true}, nu, nv);
  EXPECT_EQ(nu, (Values{1.5f, 1, 0.25f}));  // 0.5 (u + g)
  EXPECT_EQ(nv, (Values{3.5f, 0, 1.75f}));  // v + u' + g
}

TEST(MomentumCorrection, SkipsSumsThatWouldNotBeFinite) {
  const float largest = std::numeric_limits<float>::max();
  const Values g{largest, 1, std::nanf("")};
  Values u{0, 0, 5}, v{largest, 1, 6};
  EXPECT_TRUE(accumulate(g, {}, {}, u, v));
  EXPECT_EQ(u, (Values{0, 1, 5}));
  EXPECT_EQ(v, (Values{largest, 2, 6}));
}

// Parameters after 20 steps of DGC that sends every element at once, by the gradients of a bowl.
Values trained_by_sending_all(bool masking) {
  const Codec& dgc = *find_codec("dgc");
  Values parameters{1, -2, 0.5f}, velocity(3, 0), residual(3, 0);
  for (int step = 0; step < 20; ++step) {
    accumulate(parameters, {}, {.momentum = 0.9f}, velocity, residual);
    const Encoded sent = dgc.encode(residual, 3);
    Values update(3, 0);
    dgc.add(sent, update);
    for (std::size_t i = 0; i < update.size(); ++i) parameters[i] -= 0.1f * update[i];
    for (const auto index : sent.indices) {
      if (masking) velocity[static_cast<std::size_t>(index)] = 0;
    }
  }
  return parameters;
}

Values trained_dense(float momentum) {
  Values parameters{1, -2, 0.5f}, velocity(3, 0);
  for (int step = 0; step < 20; ++step) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      velocity[i] = momentum * velocity[i] + parameters[i];
      parameters[i] -= 0.1f * velocity[i];
    }
  }
  return parameters;
}

// Nothing waits, so masking leaves no momentum, and without masking all of it travels.
TEST(MomentumCorrection, SendingAllIsMomentumOrWithMaskingNone) {
  const Values masked = trained_by_sending_all(true);
  const Values unmasked = trained_by_sending_all(false);
  for (std::size_t i = 0; i < masked.size(); ++i) {
    EXPECT_NEAR(masked[i], trained_dense(0)[i], 1e-5);
    EXPECT_NEAR(unmasked[i], trained_dense(0.9f)[i], 1e-5);
  }
}

}  // namespace
}  // namespace syncline::compress
