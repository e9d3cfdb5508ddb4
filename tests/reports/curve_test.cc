#include "reports/text_plot.h"

#include <gtest/gtest.h>

namespace syncline::reports {
namespace {

const std::vector<tune::CurvePoint> kCurve{{0, 0.4}, {1024, 0.3}, {1 << 20, 0.1}, {1 << 24, 0.2}};

TEST(Curve, AsTextShowsItsRangeAndItsSteps) {
  const std::string text = curve_text(kCurve);
  EXPECT_NE(text.find("400.0 ms |*"), std::string::npos) << text;
  EXPECT_NE(text.find("100.0 ms |"), std::string::npos) << text;
  EXPECT_NE(text.find("1.000 KiB"), std::string::npos) << text;
  EXPECT_NE(text.find("16.00 MiB"), std::string::npos) << text;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(end - begin, 80u);
    begin = end + 1;
  }
}

TEST(Curve, OfOnePointIsNotDrawn) { EXPECT_EQ(curve_text({{0, 1.0}}), ""); }

TEST(Curve, AsCsvHasExactFigures) {
  EXPECT_EQ(curve_csv({{0, 0.1}, {7, 2}}), "bytes,step_time_s\n0,0.1\n7,2\n");
}

}  // namespace
}  // namespace syncline::reports
