// Order statistics and distributions against values that tables and closed forms give.
#include "core/base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace syncline {
namespace {

TEST(Statistics, TheMedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({4, 1}), 2.5);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({9, 1, 4, 2}), 3);
}

// No share of the values above one half may lie below the median.
TEST(Statistics, PercentilesRiseThroughTheMedian) {
  for (const std::vector<double>& values :
       {std::vector<double>{25.77, 24.11}, {1}, {5, 3, 8, 1}, {2, 2, 7, 1, 1}}) {
    EXPECT_DOUBLE_EQ(median(values), percentile(values, 0.5));
    EXPECT_LE(median(values), percentile(values, 0.95));
    EXPECT_GE(median(values), percentile(values, 0.05));
  }
  EXPECT_EQ(percentile({10, 20, 30, 40, 50}, 0.25), 20);
  EXPECT_EQ(percentile({10, 20}, 0.1), 11);
}

TEST(Statistics, MeanAndDeviation) {
  EXPECT_DOUBLE_EQ(mean({2, 4, 4, 4, 5, 5, 7, 9}), 5);
  EXPECT_DOUBLE_EQ(sample_deviation({2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7));
  EXPECT_EQ(sample_deviation({3, 3}), 0);
}

TEST(Statistics, TheNormalDistributionKeepsItsTail) {
  EXPECT_DOUBLE_EQ(normal_distribution(0), 0.5);
  EXPECT_NEAR(normal_distribution(1.959963984540054), 0.975, 1e-15);
  EXPECT_NEAR(normal_distribution(-10) / 7.619853024160526e-24, 1, 1e-12);
  EXPECT_DOUBLE_EQ(normal_density(0), 1 / std::sqrt(2 * std::numbers::pi));
  EXPECT_DOUBLE_EQ(normal_density(1.5), normal_density(-1.5));
}

// Any printed table; many degrees of freedom come to the normal distribution's 1.960.
TEST(Statistics, StudentsT) {
  const std::pair<double, double> table[] = {{1, 12.706},  {2, 4.303},   {3, 3.182},  {9, 2.262},
                                             {20, 2.086},  {21, 2.080},  {30, 2.042}, {60, 2.000},
                                             {120, 1.980}, {1000, 1.962}};
  for (const auto& [freedom, t] : table) EXPECT_NEAR(student_t(0.95, freedom), t, 5.1e-4);
  EXPECT_NEAR(student_t(0.99, 4), 4.604, 5e-4);
}

}  // namespace
}  // namespace syncline
