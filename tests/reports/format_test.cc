#include "reports/format.h"

#include <gtest/gtest.h>

#include <limits>

namespace syncline::reports {
namespace {

TEST(Format, SecondsHaveFourDigitsAndTheFittingUnit) {
  EXPECT_EQ(seconds_text(0), "0 s");
  EXPECT_EQ(seconds_text(0.3725), "372.5 ms");
  EXPECT_EQ(seconds_text(2.45), "2.450 s");
  EXPECT_EQ(seconds_text(16.3e-6), "16.30 us");
  EXPECT_EQ(seconds_text(1.2e-9), "1.200 ns");
  EXPECT_EQ(seconds_text(12345.6), "12350 s");
  EXPECT_EQ(seconds_text(-0.005), "-5.000 ms");
}

TEST(Format, TheUnitIsChosenAfterRounding) {
  EXPECT_EQ(seconds_text(0.99996), "1.000 s");
  EXPECT_EQ(seconds_text(0.99994), "999.9 ms");
  EXPECT_EQ(seconds_text(999.996e-6), "1.000 ms");
  EXPECT_EQ(bytes_text(1023.99 * 1024), "1.000 MiB");
}

TEST(Format, Bytes) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.500 KiB");
  EXPECT_EQ(bytes_text(97.49 * 1024 * 1024), "97.49 MiB");
  EXPECT_EQ(bytes_text(5.0 * 1024 * 1024 * 1024), "5.000 GiB");
}

TEST(Format, CountsAndThroughput) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(161), "161");
  EXPECT_EQ(count_text(12345), "12,345");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(13.5), "13.50");
  EXPECT_EQ(throughput_text(687.25), "687.2");
  EXPECT_EQ(throughput_text(12345.67), "12,345.7");
  EXPECT_EQ(throughput_text(3.2141), "3.214");
}

TEST(Format, SpeedupsAndPercent) {
  EXPECT_EQ(speedup_text(1.4667), "1.467x");
  EXPECT_EQ(short_speedup_text(1.467), "1.47x");
  EXPECT_EQ(short_speedup_text(0.985), "0.985x");
  EXPECT_EQ(short_speedup_text(12.34), "12.3x");
  EXPECT_EQ(percent_text(1.31), "+1.3 %");
  EXPECT_EQ(percent_text(-0.36), "-0.4 %");
  EXPECT_EQ(percent_text(-0.04), "0.0 %");
  EXPECT_EQ(share_text(1.31), "1.3 %");
  EXPECT_EQ(plain_number(3.9), "3.9");
  EXPECT_EQ(plain_number(25), "25");
  EXPECT_EQ(plain_number(1024), "1020");
  EXPECT_EQ(copied_number(35.2341234), "35.2341");
  EXPECT_EQ(copied_number(36), "36");
  EXPECT_EQ(copied_number(1.5e-12), "1.5e-12");
}

TEST(Format, NanIsADash) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(seconds_text(none), "-");
  EXPECT_EQ(bytes_text(infinite), "-");
  EXPECT_EQ(count_text(none), "-");
  EXPECT_EQ(throughput_text(infinite), "-");
  EXPECT_EQ(speedup_text(infinite), "-");
  EXPECT_EQ(percent_text(none), "-");
}

TEST(Format, HugeAndTinyNumbersDoNotBreak) {
  EXPECT_EQ(seconds_text(1e-15), "0.000001000 ns");
  EXPECT_EQ(seconds_text(1e20), "100000000000000000000 s");
  EXPECT_EQ(count_text(std::numeric_limits<double>::max()).size(), 309U + 102U);
}

TEST(Format, Words) {
  EXPECT_EQ(join_and({}), "");
  EXPECT_EQ(join_and({"a"}), "a");
  EXPECT_EQ(join_and({"a", "b"}), "a and b");
  EXPECT_EQ(join_and({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(plural(1, "row"), "1 row");
  EXPECT_EQ(plural(0, "row"), "0 rows");
  EXPECT_EQ(one_line("a\nb\tc\x1b[31m"), "a b c [31m");
}

}  // namespace
}  // namespace syncline::reports
