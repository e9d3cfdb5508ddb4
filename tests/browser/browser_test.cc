// The pages of --html as a browser shows them: pages.py opens them and looks.
#include <gtest/gtest.h>

#include "tests/support/program.h"
#include "tests/support/torch.h"

namespace syncline::browser {
namespace {

constexpr int kNoBrowser = 77;

TEST(Browser, PagesShowWhatTheJsonSaysAndMove) {
  const test::Scratch scratch;
  test::Program script({test::python(), SYNCLINE_SOURCE_DIR "/tests/browser/pages.py",
                        SYNCLINE_BINARY, SYNCLINE_SOURCE_DIR, scratch.folder()});
  const test::Ran ran = script.wait(std::chrono::seconds(400));
  if (ran.code == kNoBrowser) GTEST_SKIP() << "no browser here: " << ran.out;
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

}  // namespace
}  // namespace syncline::browser
