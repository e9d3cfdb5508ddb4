#include "formats/text/digits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace syncline {
namespace {

// The nearest number that a reader would write: the literal itself, to the last bit.
TEST(Digits, AreThoseOfTheLiteral) {
  EXPECT_EQ(significant(123456, 4), 123500);
  EXPECT_EQ(significant(0.00123456, 3), 0.00123);
  EXPECT_EQ(significant(35.23409999999, 6), 35.2341);
  EXPECT_EQ(significant(-0.99996, 4), -1);
  EXPECT_EQ(significant(5e-324, 1), 5e-324);
  EXPECT_EQ(significant(1.5, 1), 2);
}

TEST(Digits, LeaveTextWithoutDigitsUnchanged) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(significant(0, 5), 0);
  EXPECT_EQ(significant(kInfinite, 5), kInfinite);
  EXPECT_TRUE(std::isnan(significant(std::nan(""), 5)));
}

}  // namespace
}  // namespace syncline
