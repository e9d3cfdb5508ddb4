#include "reports/curve.h"

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

TEST(Curve, AsSvgIsAWholeDocumentWithSafeText) {
  const std::string svg = curve_svg(kCurve, 0.15, "a <b> & \"c\"");
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("a &lt;b&gt; &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_NE(svg.find("stroke-dasharray"), std::string::npos);
  // From the top left (0.4 s) to the bottom (0.1 s) at one pixel each.
  EXPECT_NE(svg.find("M80.0 40.0"), std::string::npos) << svg;
  EXPECT_NE(svg.find("V360.0"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Curve, AsCsvHasExactFigures) {
  EXPECT_EQ(curve_csv({{0, 0.1}, {7, 2}}), "bytes,step_time_s\n0,0.1\n7,2\n");
}

}  // namespace
}  // namespace syncline::reports
