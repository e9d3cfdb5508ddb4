// The host's DGC step and sparse update, by hand.
#include "kernels/reference/optimizers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/codec.h"

namespace syncline::kernels {
namespace {

using Values = std::vector<float>;

TEST(DgcStepHost, SelectsAndTakesOut) {
  Values u{1, 2, 3, 4, 5}, v{-3, 1, 3, std::nanf(""), 2};
  EXPECT_EQ(largest_magnitudes(v, 1), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(largest_magnitudes(v, 9), (std::vector<std::uint32_t>{0, 1, 2, 4}));
  const SparseMessage message = extract(largest_magnitudes(v, 2), u, v);
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
  const SparseMessage message = extract(largest_magnitudes(residual, 77), velocity, residual);
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
}

}  // namespace
}  // namespace syncline::kernels
