// The kernels' own conversions against Eigen's, and the two shapes of the tree sum.

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <limits>

#include "kernels/block.h"
#include "kernels/host_device.h"
#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

TEST(Element, EveryHalfReadsAsEigenReadsIt) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto narrow = static_cast<std::uint16_t>(bits);
    const auto half = static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(narrow));
    const auto brain = static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(narrow));
    if (std::isnan(half)) {
      EXPECT_TRUE(is_nan(to_float(Fp16{narrow}))) << bits;
    } else {
      EXPECT_EQ(bits_of(to_float(Fp16{narrow})), bits_of(half)) << bits;
    }
    if (std::isnan(brain)) {
      EXPECT_TRUE(is_nan(to_float(Bf16{narrow}))) << bits;
    } else {
      EXPECT_EQ(bits_of(to_float(Bf16{narrow})), bits_of(brain)) << bits;
    }
  }
}

// Every half, what lies exactly between it and the next (ties), and one bit to both sides; then a
// walk through all floats with a stride that is prime.
TEST(Element, RoundsAsEigenRounds) {
  const auto check = [](float value) {
    if (std::isnan(value)) {
      EXPECT_EQ(from_float<Bf16>(value).bits, 0x7fff);
      EXPECT_EQ(from_float<Fp16>(value).bits, 0x7fff);
      return;
    }
    EXPECT_EQ(from_float<Bf16>(value).bits,
              Eigen::numext::bit_cast<std::uint16_t>(Eigen::bfloat16(value)))
        << value;
    EXPECT_EQ(from_float<Fp16>(value).bits,
              Eigen::numext::bit_cast<std::uint16_t>(Eigen::half(value)))
        << value;
  };
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = to_float(Fp16{static_cast<std::uint16_t>(bits)});
    const float high = to_float(Fp16{static_cast<std::uint16_t>(bits + 1)});
    const float middle = bits == 0x7bff ? 65520.0f : low + (high - low) / 2;
    for (const float value :
         {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      check(value);
      check(-value);
    }
  }
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 65537 / 4) {
    check(float_of(static_cast<std::uint32_t>(bits)));
  }
  for (const float value : {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), 3.4e38f, 1e-45f}) {
    check(value);
  }
}

TEST(Element, TheTreeAddsHalvesPairwise) {
  double values[kBlockThreads];
  for (int i = 0; i < kBlockThreads; ++i) values[i] = i;
  EXPECT_EQ(tree_sum(values), 255.0 * 256 / 2);

  // An order shows in what is lost: 2^60 swallows a 1 that it meets, and 128 ones that meet first
  // are not swallowed. Thread 128 meets thread 0 in the first round, thread 1 in the last.
  double early[kBlockThreads] = {0x1p60};
  early[128] = 1;
  EXPECT_EQ(tree_sum(early) - 0x1p60, 0);
  double late[kBlockThreads] = {0x1p60};
  for (int i = 1; i < kBlockThreads; i += 2) late[i] = 2;
  EXPECT_EQ(tree_sum(late) - 0x1p60, 256);
}

struct TestEntry {
  std::int64_t first_tile;
};

TEST(Element, ATileFindsItsTensor) {
  TensorTable<TestEntry, 8> table;
  // Tensors of 2, 0, 0, 3, 1 and 0 tiles, counted from 10 on.
  for (const std::int64_t first : {10, 12, 12, 12, 15, 16}) {
    table.entries[table.count++] = {first};
  }
  table.end_tile = 16;
  const int expected[] = {0, 0, 3, 3, 3, 4};
  for (int tile = 10; tile < 16; ++tile) EXPECT_EQ(tensor_of(table, tile), expected[tile - 10]);
}

}  // namespace
}  // namespace syncline::kernels
