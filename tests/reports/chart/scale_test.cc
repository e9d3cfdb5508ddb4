#include "reports/chart/scale.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/units.h"
#include "tests/support/dice.h"

namespace syncline::reports::chart {
namespace {

std::vector<std::string> texts(const ChartAxis& axis, const std::vector<double>& values,
                               int wanted = 8) {
  std::vector<std::string> result;
  for (const auto& tick : Scale(axis, values).ticks(wanted)) result.push_back(tick.text);
  return result;
}

using Texts = std::vector<std::string>;

TEST(Scale, TicksAreRoundAndItsTitleNamesTheirUnit) {
  const ChartAxis axis{"step time", Unit::kSeconds, false, true};
  EXPECT_EQ(texts(axis, {0.31}), (Texts{"0", "50", "100", "150", "200", "250", "300"}));
  EXPECT_EQ(Scale(axis, {0.31}).title(), "step time, ms");
  EXPECT_EQ(texts({"share", Unit::kPercent, false, true}, {-5, 12}, 5),
            (Texts{"-5", "0", "5", "10"}));
}

TEST(Scale, BytesCountInPowersOfTwoOnALogarithmicAxis) {
  EXPECT_EQ(texts({"payload", Unit::kBytes, true}, {1024, 64.0 * kMiB}, 9),
            (Texts{"1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB",
                   "64 MiB"}));
}

TEST(Scale, LogarithmicTicksCarryTheirUnits) {
  EXPECT_EQ(texts({"time", Unit::kSeconds, true}, {9e-6, 0.02}),
            (Texts{"10 us", "100 us", "1 ms", "10 ms"}));
  EXPECT_EQ(texts({"time", Unit::kSeconds, true}, {0.1, 1}),
            (Texts{"100 ms", "200 ms", "500 ms", "1 s"}));
}

TEST(Scale, LessThanADecadeHasTicksToo) {
  EXPECT_EQ(texts({"rate", Unit::kBytesPerSecond, true}, {2.2e9, 6.1e9}),
            (Texts{"3 GB/s", "4 GB/s", "5 GB/s", "6 GB/s"}));
}

TEST(Scale, AnAxisFarFromZeroNeedNotShowIt) {
  EXPECT_GT(Scale({"t", Unit::kSeconds}, {0.30, 0.36}).least(), 0.29);
  EXPECT_EQ(Scale({"t", Unit::kSeconds}, {0.10, 0.36}).least(), 0);
  EXPECT_EQ(Scale({"t", Unit::kSeconds, false, true}, {0.30, 0.36}).least(), 0);
}

TEST(Scale, AnAxisOfCountsNeedNotBeginAtZero) { EXPECT_GT(Scale({"nodes"}, {10, 25}).least(), 9); }

TEST(Scale, ValuesWithoutALogarithmAreIgnored) {
  const Scale scale({"t", Unit::kSeconds, true}, {0, -1, INFINITY, NAN, 2, 8});
  EXPECT_NEAR(scale.least(), 2, 0.1);
  EXPECT_NEAR(scale.most(), 8, 0.3);
  EXPECT_EQ(scale.share(0), 0);
  EXPECT_DOUBLE_EQ(scale.share(4), 0.5);
}

TEST(Scale, AValueIsWrittenInItsUnitWithFourDigits) {
  EXPECT_EQ(value_text(Unit::kSeconds, 3.21456), "3.215 s");
  EXPECT_EQ(value_text(Unit::kSeconds, 0.25), "250 ms");
  EXPECT_EQ(value_text(Unit::kPercent, 12345.6), "12346 %");
}

// Whatever the values: they lie within, ticks ascend, lie within, are few and read differently.
TEST(Scale, ContainsEveryValueAndItsTicks) {
  test::Dice dice(7);
  for (int round = 0; round < 3000; ++round) {
    ChartAxis axis;
    axis.unit = static_cast<Unit>(round % 5);
    axis.logarithmic = round % 2 == 1;
    axis.from_zero = round % 3 == 0;
    std::vector<double> values;
    for (int i = 0; i <= round % 4; ++i) {
      const double size = std::pow(10, dice.between(-9000, 12000) / 1000.0);
      values.push_back(!axis.logarithmic && dice.chance(20) ? -size : size);
    }
    const Scale scale(axis, values);
    for (const double value : values) {
      EXPECT_GE(scale.share(value), -1e-9);
      EXPECT_LE(scale.share(value), 1 + 1e-9);
    }
    const auto ticks = scale.ticks(8);
    EXPECT_LE(ticks.size(), 12U) << "round " << round;
    EXPECT_GE(ticks.size(), 2U) << "round " << round;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      EXPECT_GE(scale.share(ticks[i].value), -1e-6);
      EXPECT_LE(scale.share(ticks[i].value), 1 + 1e-6);
      if (i > 0) {
        EXPECT_LT(ticks[i - 1].value, ticks[i].value);
        EXPECT_NE(ticks[i - 1].text, ticks[i].text) << "round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace syncline::reports::chart
