// --html and `report` as a user calls them; browser_test.cc looks at what they write.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/program.h"
#include "tests/support/said.h"
#include "tests/support/text.h"

namespace syncline::browser {
namespace {

using test::contains;
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
    {{"calibrate", kLog}, "s-bandwidth"},
    {{"fidelity", "--from", kScenarios, "--set", "documents"}, "s-errors"},
    {{"validate", kFirst, "--ranks", "8", "--only", "sparse", "--repeats", "2"}, "s-gantt-0"}};

TEST(Pages, EveryVerbWritesItsPageAndTheSameAgain) {
  for (const auto& [words, figure] : kPages) {
    const test::Scratch scratch;
    std::string first;
    const bool measured = words.front() == "validate";
    for (int time = 0; time < (measured ? 1 : 2); ++time) {
      auto all = words;
      all.insert(all.end(), {"--html", scratch.path("page.html")});
      const test::Ran ran = test::syncline_run(all);
      ASSERT_EQ(ran.code, 0) << words.front() << ": " << ran.err;
      const std::string page = test::text_of(scratch.path("page.html"));
      EXPECT_TRUE(contains(page, "<section id=\"" + figure + "\">")) << words.front();
      EXPECT_TRUE(page.ends_with("</html>\n"));
      EXPECT_LT(page.size(), 2'000'000U);
      if (time == 0) first = page;
      EXPECT_EQ(page, first) << words.front();
    }
  }
}

TEST(Pages, WhatCannotBeWrittenIsKnownBeforeTheWork) {
  for (const auto& [words, figure] : kPages) {
    auto all = words;
    all.insert(all.end(), {"--html", "/nowhere/page.html"});
    const test::Ran ran = test::syncline_run(all);
    EXPECT_EQ(ran.code, 3) << words.front();
    EXPECT_EQ(ran.out, "") << words.front();
    EXPECT_TRUE(contains(ran.err, "/nowhere/page.html")) << ran.err;
  }
}

TEST(Pages, ReportJoinsThoseOfAFolder) {
  const test::Scratch scratch;
  ASSERT_EQ(say({"run", kFirst, "--html", scratch.path("b.html")}).code, 0);
  ASSERT_EQ(say({"explain", kFirst, "--html", scratch.path("a.html")}).code, 0);
  // A page that was joined before is not joined again.
  std::string first;
  for (int time = 0; time < 2; ++time) {
    const auto joined = say({"report", scratch.folder()});
    ASSERT_EQ(joined.code, 0) << joined.err;
    const std::string page = test::text_of(scratch.path("report.html"));
    EXPECT_LT(page.find(">a.html</a>"), page.find(">b.html</a>"));
    EXPECT_TRUE(contains(page, "id=\"s0-shares\""));
    EXPECT_TRUE(contains(page, "id=\"s1-gantt\""));
    if (time == 0) first = page;
    EXPECT_EQ(page, first);
  }
}

TEST(Pages, ReportSaysWhatItCannotJoin) {
  const test::Scratch scratch;
  const auto none = say({"report", scratch.folder()});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(contains(none.err, "expected pages in it")) << none.err;
  test::write_text(scratch.path("own.html"), "<html></html>");
  const auto strange = say({"report", scratch.folder()});
  EXPECT_EQ(strange.code, 2);
  EXPECT_TRUE(contains(strange.err, "own.html: expected a page as --html writes it"))
      << strange.err;
  EXPECT_FALSE(std::filesystem::exists(scratch.path("report.html")));
  EXPECT_EQ(say({"report", scratch.path("nowhere")}).code, 2);
}

}  // namespace
}  // namespace syncline::browser
