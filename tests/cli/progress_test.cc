// What long work says of itself where nobody watches: one line, by what its first pieces took.
#include "cli/output.h"

#include <gtest/gtest.h>

namespace syncline::cli {
namespace {

Progress::Clock::time_point now;

Progress::Clock::time_point fake_clock() { return now; }

// Standard error is a file here.
std::string told_of(std::size_t wanted) {
  testing::internal::CaptureStderr();
  {
    Progress progress("syncline run", fake_clock);
    for (std::size_t done = 1; done <= wanted && done < 100; ++done) {
      now += std::chrono::milliseconds(100);
      progress.update(done, wanted);
    }
  }
  return testing::internal::GetCapturedStderr();
}

TEST(Progress, LongWorkSaysOnceHowLongItWillTake) {
  EXPECT_EQ(told_of(10'000), "syncline run: 20 of 10000, about 998 s left\n");
}

TEST(Progress, OfAMinuteNothingIsSaid) { EXPECT_EQ(told_of(500), ""); }

}  // namespace
}  // namespace syncline::cli
