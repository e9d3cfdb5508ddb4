// Blocks of low precision: what each format can say, and how far a block comes back from itself.
#include "core/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>

namespace syncline::compress {
namespace {

using Block = std::array<float, 128>;

Block there_and_back(const Codec& codec, const Block& values) {
  std::vector<std::byte> unit(static_cast<std::size_t>(codec.encoded_bytes(128, 128)));
  codec.pack(values.data(), unit.data());
  Block back{};
  codec.unpack(unit.data(), back.data());
  return back;
}

TEST(Blocks, BytesOnTheWire) {
  EXPECT_EQ(int8_codec().encoded_bytes(128, 0), 132);
  EXPECT_EQ(int8_codec().encoded_bytes(129, 0), 264);
  EXPECT_EQ(int4_codec().encoded_bytes(128, 0), 68);
  EXPECT_EQ(fp8_codec().encoded_bytes(1280, 0), 1320);
}

// Whole numbers up to the largest that the format holds, beside that one: the scale is 1.
TEST(Blocks, WholeNumbersAreExact) {
  for (const auto& [codec, most] : {std::pair{int8_codec(), 127}, {int4_codec(), 7}}) {
    Block values{};
    for (int i = 0; i < 128; ++i) {
      values[static_cast<std::size_t>(i)] = static_cast<float>(i % (2 * most + 1) - most);
    }
    values[5] = static_cast<float>(most);
    EXPECT_EQ(there_and_back(codec, values), values);
  }
}

// E4M3 by its definition (Micikevicius et al. 2022): exponents from -6 to 8, three bits, 448 at
// most; subnormals in steps of 2^-9. E5M2: from -14 to 15, two bits, 57344.
TEST(Blocks, EightBitFloatsHaveTheValuesOfTheirDefinition) {
  const auto numbers = [](int least, int most, int bits, double largest) {
    std::set<float> all{0};
    for (int e = least; e <= most; ++e) {
      for (int m = 0; m < 1 << bits; ++m) {
        const double value = std::ldexp(1 + std::ldexp(m, -bits), e);
        if (value <= largest) all.insert(static_cast<float>(value));
      }
    }
    for (int m = 1; m < 1 << bits; ++m) {
      all.insert(static_cast<float>(std::ldexp(m, least - bits)));
    }
    return all;
  };
  for (const auto& [codec, all] : {std::pair{fp8_codec(), numbers(-6, 8, 3, 448)},
                                   {fp8_e5m2_codec(), numbers(-14, 15, 2, 57344)}}) {
    EXPECT_EQ(all.size(), codec.name == "fp8" ? 127u : 124u);
    const float largest = *all.rbegin();
    for (const float value : all) {
      Block values{};
      values.fill(-value);
      values[0] = largest;
      EXPECT_EQ(there_and_back(codec, values), values);
    }
    // Between two neighbours the nearer one.
    for (auto low = all.begin(), high = std::next(low); high != all.end(); ++low, ++high) {
      Block values{};
      values[0] = largest;
      values[1] = *low + 0.4F * (*high - *low);
      values[2] = *low + 0.6F * (*high - *low);
      const Block back = there_and_back(codec, values);
      EXPECT_EQ(back[1], *low);
      EXPECT_EQ(back[2], *high);
    }
  }
}

TEST(Blocks, NoErrorIsAboveHalfAStep) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 3e-4F);
  for (int trial = 0; trial < 200; ++trial) {
    Block values{};
    for (auto& value : values) value = normal(random);
    const float most = std::fabs(
        *std::ranges::max_element(values, {}, [](float value) { return std::fabs(value); }));
    for (const auto& [codec, steps] : {std::pair{int8_codec(), 127.0F}, {int4_codec(), 7.0F}}) {
      const Block back = there_and_back(codec, values);
      for (std::size_t i = 0; i < back.size(); ++i) {
        EXPECT_LE(std::fabs(back[i] - values[i]), 0.5001F * most / steps);
      }
    }
    const Block back = there_and_back(fp8_codec(), values);
    for (std::size_t i = 0; i < back.size(); ++i) {
      EXPECT_LE(std::fabs(back[i] - values[i]),
                std::max(std::fabs(values[i]) / 15.9F, most / 448 * 0x1p-10F));
    }
  }
}

TEST(Blocks, OneNonFiniteValueMakesItsBlockNonFinite) {
  for (const Codec& codec : {int8_codec(), int4_codec(), fp8_codec(), fp8_e5m2_codec()}) {
    for (const float odd :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      Block values{};
      values.fill(2);
      values[100] = odd;
      for (const float value : there_and_back(codec, values)) EXPECT_TRUE(std::isnan(value));
    }
  }
}

// Scales below the least normal number lose digits of their own.
TEST(Blocks, ValuesNextToNothingStayInTheirRange) {
  for (const Codec& codec : {int8_codec(), int4_codec(), fp8_codec(), fp8_e5m2_codec()}) {
    for (int units = 1; units < 2000; units += 7) {
      Block values{};
      values.fill(static_cast<float>(units) * std::numeric_limits<float>::denorm_min());
      values[3] = -values[3];
      const Block back = there_and_back(codec, values);
      EXPECT_LE(std::fabs(back[0]), 2 * values[0]);
      EXPECT_EQ(back[3], -back[0]);
    }
  }
}

TEST(Blocks, ZerosAndOneLargeValue) {
  for (const Codec& codec : {int8_codec(), int4_codec(), fp8_codec(), fp8_e5m2_codec()}) {
    EXPECT_EQ(there_and_back(codec, Block{}), Block{});
    Block values{};
    values[77] = -3e38F;
    const Block back = there_and_back(codec, values);
    EXPECT_NEAR(back[77] / values[77], 1, 1e-6);
    EXPECT_EQ(std::ranges::count(back, 0.0F), 127);
  }
}

}  // namespace
}  // namespace syncline::compress
