// --html and `report` as a user calls them; browser_test.cc looks at what they write.
#include <gtest/gtest.h>

#include "tests/support/expect.h"
#include "tests/support/program.h"
#include "tests/support/said.h"

namespace syncline::browser {
namespace {

using test::say;

const std::string kScenarios = SYNCLINE_SOURCE_DIR "/scenarios/";
const std::string kFirst = kScenarios + "first.json";
const std::string kLog =
    kScenarios + "measured/nccl-tests/2080ti-10gbe-tcp_allreduce_ring_n008x4.txt";

// Each verb that writes a page, with one figure that must be on it.
const std::vector<std::pair<std::vector<std::string>, std::string>> kPages{
    {{"run", kFirst}, "s-gantt"},
    {{"run", kScenarios + "published/paddle_fleet_2019.json"}, "s-published-throughput"},
    {{"tune", kFirst, "--budget", "20"}, "s-size"},
    {{"tune", kFirst, "--live", "emulated", "--budget", "4"}, "s-search"},
    {{"explain", kFirst}, "s-shares"},
    {{"calibrate", "logs", kLog}, "s-bandwidth"},
    {{"fidelity", "--from", kScenarios, "--set", "documents"}, "s-errors"},
    {{"validate", kFirst, "--ranks", "8", "--only", "sparse", "--repeats", "2"}, "s-gantt-0"}};

TEST(Pages, EveryVerbWritesItsPageAndTheSameAgain) {
  for (const auto& [words, figure] : kPages) {
    const test::Scratch scratch;
    std::string first;
    const bool measured = words.front() == "validate";
    for (int time = 0; time < (measured ? 1 : 2); ++time) {
      const test::Ran ran =
          test::syncline_run(test::joined(words, {"--html", scratch.path("page.html")}));
      ASSERT_EQ(ran.code, 0) << words.front() << ": " << ran.err;
      const std::string page = test::text_of(scratch.path("page.html"));
      EXPECT_TRUE(test::says(page, "<section id=\"" + figure + "\">")) << words.front();
      EXPECT_TRUE(page.ends_with("</html>\n"));
      EXPECT_LT(page.size(), 2'000'000U);
      if (time == 0) first = page;
      EXPECT_EQ(page, first) << words.front();
    }
  }
}

TEST(Pages, AnUnwritableFileIsReportedBeforeTheWork) {
  for (const auto& [words, figure] : kPages) {
    const test::Ran ran = test::syncline_run(test::joined(words, {"--html", "/nowhere/page.html"}));
    EXPECT_TRUE(test::failed(ran, 2, "/nowhere/page.html")) << words.front();
    EXPECT_EQ(ran.out, "") << words.front();
  }
}

}  // namespace
}  // namespace syncline::browser
