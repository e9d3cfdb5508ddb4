// PowerSGD's factors: what is compressed, what it sends and costs, and the mathematics.
#include "core/compress/power_sgd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/small_plans.h"

namespace syncline::compress {
namespace {

using test::tensor_of;
using Values = std::vector<float>;

Compression of_rank(std::int64_t rank, double min_rate = 2) {
  Compression compression;
  compression.codec = "powersgd";
  compression.rank = rank;
  compression.min_rate = min_rate;
  return compression;
}

// torch's _should_compress: (n + m) r min_compression_rate < n m, with r at most the smaller side.
TEST(PowerSgd, CompressesWhatGetsSmallerByTheRate) {
  EXPECT_EQ(low_rank_of(tensor_of("w", {100, 50}), of_rank(4), true).rank, 4);
  EXPECT_EQ(low_rank_of(tensor_of("b", {5000}), of_rank(1), true).rank, 0);  // a vector
  EXPECT_EQ(low_rank_of(tensor_of("w", {4, 4}), of_rank(1), true).rank, 0);  // 16 is not above 16
  EXPECT_EQ(low_rank_of(tensor_of("w", {4, 5}), of_rank(1), true).rank, 1);  // 20 is above 18
  EXPECT_EQ(low_rank_of(tensor_of("w", {4, 5}), of_rank(9, 0.1), true).rank, 4);
  EXPECT_EQ(low_rank_of(test::sparse_tensor_of("e", {1000, 64}, 3), of_rank(1), true).rank, 0);
  // The first dimension by all others.
  const LowRank convolution = low_rank_of(tensor_of("c", {64, 32, 3, 3}), of_rank(2), true);
  EXPECT_EQ(convolution.rows, 64);
  EXPECT_EQ(convolution.columns, 288);
}

TEST(PowerSgd, WithoutShapesAGradientIsNearlyASquare) {
  Workload workload;
  workload.tensors = {tensor_of("a", {1000}), tensor_of("b", {64})};
  EXPECT_FALSE(shapes_known(workload));
  const LowRank square = low_rank_of(workload.tensors.front(), of_rank(1), false);
  EXPECT_EQ(square.rows, 31);
  EXPECT_EQ(square.columns, 33);
  EXPECT_EQ(square.rank, 1);
  workload.tensors.push_back(tensor_of("c", {8, 8}));
  EXPECT_TRUE(shapes_known(workload));
}

TEST(PowerSgd, CountsElementsAndFlops) {
  const std::vector<LowRank> bucket{low_rank_of(tensor_of("w", {100, 50}), of_rank(3), true),
                                    low_rank_of(tensor_of("b", {100}), of_rank(3), true),
                                    low_rank_of(tensor_of("v", {30, 40}), of_rank(3), true)};
  const LowRankSizes sizes = low_rank_sizes(bucket);
  EXPECT_EQ(sizes.whole, 100);
  EXPECT_EQ(sizes.p, 3 * (100 + 30));
  EXPECT_EQ(sizes.q, 3 * (50 + 40));
  EXPECT_EQ(sizes.matrices, 2);
  EXPECT_DOUBLE_EQ(sizes.product, 2.0 * 3 * (5000 + 1200));
  // Two products ahead of the sums and one behind: M Q, then M^T P and P Q^T.
  EXPECT_GT(encode_work(sizes, 4).flops, sizes.product);
  EXPECT_LT(encode_work(sizes, 4).flops, 2 * sizes.product);
  EXPECT_GT(decode_work(sizes, 4).flops, 2 * sizes.product);
  // No less is moved than what must be: the gradient, its error and its copy.
  EXPECT_GT(encode_work(sizes, 4).bytes, 4.0 * 6 * (5000 + 1200));
  EXPECT_EQ(encode_work(sizes, 2).bytes * 2, encode_work(sizes, 4).bytes);
}

TEST(PowerSgd, ColumnsAreOrthogonalAndSpanTheSame) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 50; ++round) {
    const std::size_t rank = 1 + random() % 6;
    const std::size_t rows = rank + random() % 40;
    Values factor(rows * rank);
    for (float& value : factor) value = normal(random);
    Values made = factor;
    orthogonalise(made, static_cast<std::int64_t>(rank));
    const auto along = [&](const Values& a, std::size_t i, const Values& b, std::size_t j) {
      double sum = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        sum += static_cast<double>(a[r * rank + i]) * static_cast<double>(b[r * rank + j]);
      }
      return sum;
    };
    for (std::size_t i = 0; i < rank; ++i) {
      for (std::size_t j = 0; j < rank; ++j) {
        EXPECT_NEAR(along(made, i, made, j), i == j ? 1 : 0, 2e-4) << round;
      }
      // What the new columns leave of an old one is nothing.
      double left = along(factor, i, factor, i);
      for (std::size_t j = 0; j < rank; ++j) left -= std::pow(along(factor, i, made, j), 2);
      EXPECT_NEAR(left, 0, 1e-3 * along(factor, i, factor, i) + 1e-4) << round;
    }
  }
}

TEST(PowerSgd, DependentColumnsBecomeZeros) {
  Values factor{0.3F, 0.9F, 0.1F, 0.3F, 0.7F, 2.1F};
  orthogonalise(factor, 2);
  for (std::size_t i = 0; i < factor.size(); i += 2) EXPECT_EQ(factor[i + 1], 0);
}

TEST(PowerSgd, AColumnOfZerosStaysOne) {
  Values factor{0, 3, 0, 4};
  orthogonalise(factor, 2);
  EXPECT_FLOAT_EQ(factor[1], 0.6F);
  EXPECT_EQ(factor[0], 0);
  EXPECT_EQ(factor[2], 0);
}

// A matrix of rank r is what its factors of rank r say; with fewer columns P Q^T is the best that
// the span of P can do: what is left is orthogonal to it.
TEST(PowerSgd, FactorsGiveALowRankMatrixBack) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 40; ++round) {
    const std::int64_t rank = 1 + static_cast<std::int64_t>(random() % 4);
    const LowRank matrix{0, 5 + static_cast<std::int64_t>(random() % 20),
                         5 + static_cast<std::int64_t>(random() % 20), rank};
    Values left(static_cast<std::size_t>(matrix.rows * rank));
    Values right(static_cast<std::size_t>(matrix.columns * rank));
    for (float& value : left) value = normal(random);
    for (float& value : right) value = normal(random);
    Values wanted(static_cast<std::size_t>(matrix.rows * matrix.columns));
    multiply(left, right, matrix, wanted);
    auto q = starting_factor(matrix, random());
    orthogonalise(q, rank);
    auto p = first_factor(wanted, matrix, q);
    orthogonalise(p, rank);
    q = second_factor(wanted, matrix, p);
    Values found(wanted.size());
    multiply(p, q, matrix, found);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(found[i], wanted[i], 2e-3) << round;
    }
  }
}

// Of a matrix whose last row is cut short the rest counts as zeros.
TEST(PowerSgd, AnIncompleteLastRowEndsWithZeros) {
  const LowRank matrix{7, 2, 4, 1};
  const Values gradient{1, 2, 3, 4, 5, 6, 7};
  Values full = gradient;
  full.push_back(0);
  const auto q = starting_factor(matrix, 1);
  EXPECT_EQ(first_factor(gradient, matrix, q), first_factor(full, matrix, q));
  const Values p{2, 3};
  EXPECT_EQ(second_factor(gradient, matrix, p), second_factor(full, matrix, p));
}

}  // namespace
}  // namespace syncline::compress
