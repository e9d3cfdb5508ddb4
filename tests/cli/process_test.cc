// Ctrl-C as a long verb takes it.
#include "cli/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace syncline::cli {
namespace {

TEST(Interrupts, EndWhatNobodyInterruptsInTime) {
  EXPECT_EXIT(
      {
        catch_interrupts(1);
        std::raise(SIGINT);
        for (;;) ::pause();
      },
      testing::ExitedWithCode(kInterruptedExit), "syncline: interrupted");
}

TEST(Interrupts, LoseNoResults) {
  EXPECT_EXIT(
      {
        catch_interrupts(1);
        std::raise(SIGINT);
        keep_results();
        ::sleep(2);  // as long as a slow row takes
        std::_Exit(is_interrupted() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Interrupts, AreLeftToWhoeverAsksForThem) {
  EXPECT_EXIT(
      {
        catch_interrupts(1);
        std::raise(SIGINT);
        if (!is_interrupted()) std::_Exit(1);
        ::sleep(2);  // as long as an answer takes to be printed
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace syncline::cli
