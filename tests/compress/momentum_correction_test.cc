#include "core/compress/momentum_correction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

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

TEST(MomentumCorrection, HoldsWhatWouldNotBeFinite) {
  const float largest = std::numeric_limits<float>::max();
  const Values g{largest, 1, std::nanf("")};
  Values u{0, 0, 5}, v{largest, 1, 6};
  EXPECT_TRUE(accumulate(g, {}, {}, u, v));
  EXPECT_EQ(u, (Values{0, 1, 5}));
  EXPECT_EQ(v, (Values{largest, 2, 6}));
}

}  // namespace
}  // namespace syncline::compress
