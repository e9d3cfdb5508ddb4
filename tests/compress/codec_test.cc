// What a codec sends, what stays behind, and what arrives.
#include "core/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/base/internal_error.h"
#include "tests/support/small_plans.h"

namespace syncline::compress {
namespace {

using Values = std::vector<float>;

const Codec& dgc() { return *find_codec("dgc"); }
const Codec& fp16() { return *find_codec("fp16"); }

// The definition, slowly: positions by falling magnitude, the lower index first among equals.
std::vector<std::int32_t> largest(const Values& values, std::size_t kept) {
  std::vector<std::int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::fabs(values[static_cast<std::size_t>(a)]) >
           std::fabs(values[static_cast<std::size_t>(b)]);
  });
  order.resize(std::min(kept, order.size()));
  std::sort(order.begin(), order.end());
  return order;
}

void expect_exact_selection(const Values& values, std::size_t kept) {
  Values rest = values;
  const Encoded encoded = dgc().encode(rest, static_cast<std::int64_t>(kept));
  const auto expected = largest(values, kept);
  ASSERT_EQ(encoded.indices, expected);
  ASSERT_EQ(encoded.values.size(), expected.size());
  Values remaining = values;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto at = static_cast<std::size_t>(expected[i]);
    EXPECT_EQ(encoded.values[i], values[at]);
    remaining[at] = 0;
  }
  EXPECT_EQ(rest, remaining);  // zero where it was sent, untouched elsewhere
}

TEST(Codecs, AreFoundByName) {
  EXPECT_EQ(codec_names(),
            (std::vector<std::string>{"dgc", "fp16", "bf16", "powersgd", "batched_powersgd", "int8",
                                      "int4", "fp8", "fp8_e5m2"}));
  for (const auto& codec : codecs()) EXPECT_EQ(find_codec(codec.name)->name, codec.name);
  EXPECT_EQ(find_codec("topk"), nullptr);
  EXPECT_EQ(find_codec(""), nullptr);
}

TEST(DgcCodec, SelectsExactlyTheLargestOfRandomValues) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (int trial = 0; trial < 300; ++trial) {
    Values values(1 + random() % 500);
    for (auto& value : values) value = normal(random);
    expect_exact_selection(values, 1 + random() % values.size());
  }
}

// Few distinct magnitudes: most of the choice is among equals.
TEST(DgcCodec, TiesGoToTheLowerIndex) {
  std::mt19937 random(8);
  for (int trial = 0; trial < 300; ++trial) {
    Values values(1 + random() % 300);
    for (auto& value : values) value = static_cast<float>(static_cast<int>(random() % 5) - 2);
    expect_exact_selection(values, 1 + random() % values.size());
  }
}

TEST(DgcCodec, AdversarialInputs) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float infinite = std::numeric_limits<float>::infinity();
  Values rising(1000), falling(1000), organ_pipe(1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    rising[i] = static_cast<float>(i);
    falling[i] = -static_cast<float>(1000 - i);
    organ_pipe[i] = static_cast<float>(std::min(i, 999 - i)) * (i % 2 == 0 ? 1.0F : -1.0F);
  }
  for (const Values& values :
       {Values(64, 0.0F), Values(64, -3.0F), Values{-0.0F, 0.0F, -0.0F, tiny, -tiny},
        Values{1, infinite, -infinite, 2, std::numeric_limits<float>::max()}, rising, falling,
        organ_pipe, Values{5}}) {
    for (std::size_t kept : {std::size_t{1}, values.size() / 2, values.size()}) {
      if (kept > 0) expect_exact_selection(values, kept);
    }
  }
}

TEST(DgcCodec, KeepsAllWhenAskedForMore) { expect_exact_selection({3, 1, 2}, 10); }

TEST(DgcCodec, AddSumsTheRanksAndLosesNothing) {
  std::mt19937 random(9);
  Values sum(200, 0.0F), total(200, 0.0F);
  for (int rank = 0; rank < 4; ++rank) {
    Values values(200);
    for (auto& value : values) value = static_cast<float>(static_cast<int>(random() % 201) - 100);
    for (std::size_t i = 0; i < 200; ++i) total[i] += values[i];
    dgc().add(dgc().encode(values, 50), sum);
    for (std::size_t i = 0; i < 200; ++i) total[i] -= values[i];  // what stayed behind
  }
  EXPECT_EQ(sum, total);
}

TEST(DgcCodec, AppliesOnlyToLargeDenseFp32) {
  EXPECT_TRUE(dgc().applies(test::tensor_of("a", {16384}), 16384));
  EXPECT_FALSE(dgc().applies(test::tensor_of("a", {16383}), 16384));
  EXPECT_FALSE(dgc().applies(test::tensor_of("a", {20000}, DType::kFp16), 16384));
  EXPECT_FALSE(dgc().applies(test::tensor_of("a", {20000}, DType::kFp64), 16384));
  EXPECT_FALSE(dgc().applies(test::sparse_tensor_of("a", {20000}, 5), 16384));
  EXPECT_EQ(dgc().encoded_bytes(1000000, 1000), 8000);  // an int32 and a float each
}

float half(float value) {
  Values values{value};
  return fp16().encode(values, 1).values[0];
}

// IEEE 754 binary16 from its bits, written down independently.
float half_from_bits(unsigned bits) {
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  const int exponent = static_cast<int>((bits >> 10U) & 31U);
  const auto fraction = static_cast<float>(bits & 1023U);
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent == 31) return sign * std::numeric_limits<float>::infinity();
  return sign * std::ldexp(1024.0F + fraction, exponent - 25);
}

TEST(Fp16Codec, EveryHalfComesBackUnchanged) {
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    const bool not_a_number = (bits & 0x7c00U) == 0x7c00U && (bits & 1023U) != 0;
    if (not_a_number) continue;
    ASSERT_EQ(half(half_from_bits(bits)), half_from_bits(bits)) << bits;
  }
}

TEST(Fp16Codec, RoundsToTheNearestAndTiesToEven) {
  for (unsigned bits = 0; bits < 0x7bffU; bits += 7) {
    const float low = half_from_bits(bits);
    const float high = half_from_bits(bits + 1);
    const float middle = low + (high - low) / 2;
    EXPECT_EQ(half(std::nextafter(middle, low)), low) << bits;
    EXPECT_EQ(half(std::nextafter(middle, high)), high) << bits;
    EXPECT_EQ(half(middle), bits % 2 == 0 ? low : high) << bits;
    EXPECT_EQ(half(-middle), bits % 2 == 0 ? -low : -high) << bits;
  }
}

TEST(Fp16Codec, OverflowsToInfinity) {
  EXPECT_EQ(half(65504), 65504);
  EXPECT_EQ(half(65519), 65504);
  EXPECT_TRUE(std::isinf(half(65520)));
  EXPECT_TRUE(std::isnan(half(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Fp16Codec, SendsEveryElementInHalfTheBytes) {
  Values values{1, 2, 3};
  const Encoded encoded = fp16().encode(values, 3);
  EXPECT_TRUE(encoded.indices.empty());
  Values sum{10, 20, 30};
  fp16().add(encoded, sum);
  EXPECT_EQ(sum, (Values{11, 22, 33}));
  EXPECT_EQ(fp16().encoded_bytes(1000, 1000), 2000);
  EXPECT_TRUE(fp16().applies(test::tensor_of("a", {1}), 0));
  EXPECT_TRUE(fp16().applies(test::tensor_of("a", {1}, DType::kFp64), 0));
  EXPECT_FALSE(fp16().applies(test::tensor_of("a", {1}, DType::kBf16), 0));
}

// Eight bits of mantissa, the range of single precision; ties go to the even neighbour.
TEST(Bf16, KeepsTheRangeAndRoundsTheMantissa) {
  const Codec& bf16 = *find_codec("bf16");
  std::vector<float> values{1.0F,  1.0F + 0x1p-8F, 1.0F + 3 * 0x1p-8F, 1.0F + 0x1.2p-8F,
                            3e38F, -0.5F};
  const Encoded encoded = bf16.encode(values, 6);
  EXPECT_EQ(encoded.values[0], 1.0F);
  EXPECT_EQ(encoded.values[1], 1.0F);
  EXPECT_EQ(encoded.values[2], 1.0F + 0x1p-6F);
  EXPECT_EQ(encoded.values[3], 1.0F + 0x1p-7F);
  EXPECT_NEAR(encoded.values[4] / 3e38F, 1, 0x1p-8);
  EXPECT_EQ(encoded.values[5], -0.5F);
  EXPECT_EQ(bf16.encoded_bytes(1000, 1000), 2000);
  EXPECT_FALSE(bf16.applies(test::tensor_of("a", {1}, DType::kFp16), 0));
}

// A table of two rows of one name would answer with the first.
TEST(Codecs, AreRefusedIfNamesRepeat) { EXPECT_THROW(hand_in(dgc_codec()), InternalError); }

}  // namespace
}  // namespace syncline::compress
