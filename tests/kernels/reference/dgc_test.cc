// The host's DGC step and sparse update, by hand.
#include "kernels/reference/dgc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/compress/codec.h"

namespace syncline::kernels {
namespace {

using Values = std::vector<float>;

TEST(DgcStepHost, SelectsAndTakesOut) {
  Values u{1, 2, 3, 4, 5}, v{-3, 1, 3, std::nanf(""), 2};
  EXPECT_EQ(largest_magnitudes(v, 1), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(largest_magnitudes(v, 9), (std::vector<std::uint32_t>{0, 1, 2, 4}));
  const SparseMessage message = take_out(largest_magnitudes(v, 2), u, v);
  EXPECT_EQ(message.indices, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(message.values, (Values{-3, 3}));
  EXPECT_EQ(u, (Values{0, 2, 0, 4, 5}));
  EXPECT_EQ(v[0], 0.0f);
  EXPECT_EQ(v[4], 2.0f);
}

// The codec of the table and this step choose the same elements.
TEST(DgcStepHost, AgreesWithTheCodec) {
  Values values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * 7919 % 101) - 50);
  }
  Values residual = values, velocity(values.size());
  const compress::Encoded encoded = compress::find_codec("dgc")->encode(values, 77);
  const SparseMessage message = take_out(largest_magnitudes(residual, 77), velocity, residual);
  EXPECT_EQ(std::vector<std::int32_t>(message.indices.begin(), message.indices.end()),
            encoded.indices);
  EXPECT_EQ(message.values, encoded.values);
  EXPECT_EQ(residual, values);
}

TEST(SparseApplyHost, RanksInOrderAndBadListsRefused) {
  Values weights{1, 2, 3};
  const SparseMessage a{{0, 2}, {2, 4}}, b{{2}, {-8}};
  const std::vector<SparseMessage> good{a, b};
  EXPECT_TRUE(apply_messages(good, 0.5f, weights));
  EXPECT_EQ(weights, (Values{0, 2, 5}));
  for (const SparseMessage& bad :
       {SparseMessage{{3}, {1}}, SparseMessage{{1, 1}, {1, 1}}, SparseMessage{{2, 1}, {1, 1}},
        SparseMessage{{1}, {std::nanf("")}}}) {
    const std::vector<SparseMessage> messages{a, bad};
    EXPECT_FALSE(apply_messages(messages, 0.5f, weights));
    EXPECT_EQ(weights, (Values{0, 2, 5}));
  }
  const std::vector<SparseMessage> unordered{{{2, 0xffffffffu, 0}, {2, -1, 2}}};
  EXPECT_TRUE(apply_messages(unordered, 1, weights, false));
  EXPECT_EQ(weights, (Values{-2, 2, 3}));
}

// ---- Paddle's sampled threshold: shapes by the library's arithmetic, and how much it sends
// ---------

TEST(SampledThreshold, Shapes) {
  const SampleShape small = sample_shape(16384, 16);
  EXPECT_EQ(small.rank, 8);
  EXPECT_EQ(small.window, 8192);
  EXPECT_EQ(small.windows, 1);
  EXPECT_EQ(small.threads, 32 * 256);
  const SampleShape large = sample_shape(1048576, 1048);
  EXPECT_EQ(large.rank, 32);
  EXPECT_EQ(large.window, 32017);  // 1048576 / 32.75
  EXPECT_EQ(large.windows, 16);
  EXPECT_EQ(large.stride, 65536);
  EXPECT_EQ(large.threads, 128 * 256);
}

// Windows never reach beyond the tensor.
TEST(SampledThreshold, WindowsLieInside) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::int64_t n = 16384 + static_cast<std::int64_t>(random() % 100000000);
    const std::int64_t kept = 2 + static_cast<std::int64_t>(random()) % (n - 1);
    const SampleShape shape = sample_shape(n, kept);
    ASSERT_GE(shape.windows, 1);
    ASSERT_LE((shape.windows - 1) * shape.stride + shape.window, n) << n << " " << kept;
  }
}

// An emulation in Python of the library's rules on normal values gave 0.987 +- 0.066 times k above
// the threshold at n = 262144, and 0.967 k sent (mean of 1500 draws).
TEST(SampledThreshold, SendsAboutWhatItShouldOfNormalValues) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const std::int64_t n = 262144, kept = 262;
  double above = 0, sent = 0;
  const int draws = 12;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<float> residual(static_cast<std::size_t>(n)), velocity(residual.size());
    for (auto& value : residual) value = normal(random);
    const float threshold = sampled_threshold(residual, kept);
    for (const float value : residual) above += std::fabs(value) > threshold ? 1 : 0;
    for (const auto index : take_above(threshold, kept, velocity, residual).indices) {
      sent += index != 0xffffffffu ? 1 : 0;
    }
  }
  // Three standard deviations of the mean of so many draws.
  EXPECT_NEAR(above / draws / 262, 0.987, 3 * 0.066 / std::sqrt(draws));
  EXPECT_NEAR(sent / draws / 262, 0.967, 3 * 0.066 / std::sqrt(draws));
}

TEST(SampledThreshold, EqualMagnitudesSendNothing) {
  std::vector<float> residual(20000, -3.0f), velocity(20000, 1.0f);
  const float threshold = sampled_threshold(residual, 20);
  EXPECT_EQ(threshold, 3.0f);
  const SparseMessage message = take_above(threshold, 20, velocity, residual);
  EXPECT_EQ(message.indices, std::vector<std::uint32_t>(20, 0xffffffffu));
  EXPECT_EQ(message.values, std::vector<float>(20, -1.0f));
  EXPECT_EQ(residual, std::vector<float>(20000, -3.0f));
}

// Surplus goes by the thread's number: thread t has elements t, t + threads and so on.
TEST(SampledThreshold, SurplusStaysByPosition) {
  std::vector<float> residual(16384, 0.0f), velocity(16384, 1.0f);
  for (const std::size_t i : {std::size_t{5}, std::size_t{8192 + 5}, std::size_t{6}}) {
    residual[i] = 9;
  }
  const SparseMessage message = take_above(1.0f, 2, velocity, residual);
  EXPECT_EQ(message.indices, (std::vector<std::uint32_t>{5, 8192 + 5}));
  EXPECT_EQ(residual[6], 9.0f);
  EXPECT_EQ(velocity[5], 0.0f);
  EXPECT_EQ(velocity[6], 1.0f);
}

}  // namespace
}  // namespace syncline::kernels
