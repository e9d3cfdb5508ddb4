// What formats round away, against what rounding is known to take.
#include "studies/rows/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/small_plans.h"

namespace syncline::measure {
namespace {

std::optional<double> error_of(int ranks, Strategy strategy, DType format = DType::kFp32) {
  Scenario scenario;
  scenario.cluster = test::cluster_of(ranks, 1);
  scenario.workload.tensors = {test::tensor_of("w", {512, 64}, format)};
  return rounding_error(scenario, strategy);
}

Strategy with(const char* codec, const char* algorithm = "ring") {
  Strategy strategy;
  strategy.compression.codec = codec;
  strategy.algorithm = algorithm;
  return strategy;
}

// Relative, of normally distributed numbers whose steps are `step` from 1 to 2: uniform within half
// a step. Where the deviation lies between two powers of two counts.
double once(double step, double deviation) {
  std::mt19937 random(9);
  std::normal_distribution<double> normal(0, deviation);
  double errors = 0, squares = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double value = normal(random);
    const double own = step * std::exp2(std::floor(std::log2(std::abs(value))));
    errors += own * own / 12;
    squares += value * value;
  }
  return std::sqrt(errors / squares);
}

// Relative, of numbers in blocks of 128 with a scale each: uniform within half a step of the
// largest over `most`.
double of_blocks(double most) {
  std::mt19937 random(9);
  std::normal_distribution<double> normal;
  double squares = 0;
  constexpr int kBlocks = 2000;
  for (int block = 0; block < kBlocks; ++block) {
    double largest = 0;
    for (int i = 0; i < 128; ++i) largest = std::max(largest, std::abs(normal(random)));
    squares += largest * largest / most / most / 12;
  }
  return std::sqrt(squares / kBlocks);
}

// Each of two ranks' numbers is rounded, and their sum, which is as large as both together.
TEST(RoundingError, IsThatOfTwoRoundings) {
  const double two = std::sqrt(2.0);
  const double halves = std::hypot(once(1, 1), once(1, two));
  EXPECT_NEAR(*error_of(2, with("fp16")) / 0x1p-10, halves, 0.06 * halves);
  EXPECT_NEAR(*error_of(2, with("bf16")) / 0x1p-7, halves, 0.06 * halves);
  EXPECT_NEAR(*error_of(2, with("int8", "all_to_all")), two * of_blocks(127), 0.0005);
  EXPECT_NEAR(*error_of(2, with("int4", "all_to_all")), two * of_blocks(7), 0.01);
}

// Gradients in 16 bits are rounded in their sums alone. Two numbers of one octave have sums that
// fall half-way as often as not: somewhat more than a uniform error.
TEST(RoundingError, IsTheSumsForNarrowGradients) {
  const double sum = once(1, std::sqrt(2.0));
  EXPECT_NEAR(*error_of(2, {}, DType::kBf16) / 0x1p-7, sum, 0.1 * sum);
  Strategy wide;
  wide.fusion.sum_format = DType::kFp32;
  EXPECT_FALSE(error_of(2, wide, DType::kBf16));
}

// All to all rounds twice, whatever the ranks; a ring in each of its rounds.
TEST(RoundingError, TellsARingFromAllToAll) {
  for (const int ranks : {4, 16, 64}) {
    const double direct = *error_of(ranks, with("int8", "all_to_all"));
    EXPECT_NEAR(direct, std::sqrt(2.0) * of_blocks(127), 0.001) << ranks;
    EXPECT_GT(*error_of(ranks, with("int8")), direct * std::sqrt(ranks / 4.0)) << ranks;
  }
}

TEST(RoundingError, IsNotComputedIfNothingIsRoundedOrMoreIsLost) {
  EXPECT_FALSE(error_of(2, {}));
  EXPECT_FALSE(error_of(2, {}, DType::kFp64));
  for (const char* codec : {"dgc", "powersgd", "batched_powersgd"}) {
    EXPECT_FALSE(error_of(2, with(codec))) << codec;
  }
  Strategy local = with("fp16");
  local.local_sgd.enabled = true;
  EXPECT_FALSE(error_of(2, local));
  EXPECT_FALSE(error_of(1, with("fp16")));
  EXPECT_FALSE(error_of(256, with("fp16")));
}

}  // namespace
}  // namespace syncline::measure
